//! Keys that values are masked with.

use crate::endpoints::Service;
use crate::extract::Name;
use crate::reply::{Answer, answer};
use offshoot_api::{ErrorBody, MaskKey, MaskKeyList, routes};

/// The keys that masked dSources use, by name; never a key itself.
#[utoipa::path(
    get,
    path = routes::MASK_KEYS,
    tag = "masks",
    responses((status = 200, body = MaskKeyList, description = "The keys"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_mask_keys(Service(service): Service) -> Answer<MaskKeyList> {
    answer(service, |service| service.list_mask_keys().map(|keys| MaskKeyList { keys })).await
}

/// Makes another key of a name and forgets the one before. What is masked from then on has other masks: it does not join
/// what was masked before, and tokens from before cannot be turned back.
#[utoipa::path(
    post,
    path = routes::MASK_KEY_ROTATE,
    tag = "masks",
    params(("name" = String, Path, description = "The name that rules have for it")),
    responses((status = 200, body = MaskKey, description = "The new key"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn rotate_mask_key(
    Service(service): Service,
    Name(name): Name,
) -> Answer<MaskKey> {
    answer(service, move |service| service.rotate_mask_key(&name)).await
}
