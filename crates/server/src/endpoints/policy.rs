//! Policies.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Answer, answer};
use offshoot_api::{ErrorBody, Policy, PolicyList, SetPolicy, routes};

/// The policies of all dSources and VDBs.
#[utoipa::path(
    get,
    path = routes::POLICIES,
    tag = "policies",
    responses((status = 200, body = PolicyList, description = "Policies"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_policies(Service(service): Service) -> Answer<PolicyList> {
    answer(service, move |service| service.list_policies().map(|policies| PolicyList { policies }))
        .await
}

/// The policy of a dSource or VDB.
#[utoipa::path(
    get,
    path = routes::POLICY,
    tag = "policies",
    params(("name" = String, Path, description = "The name of a dSource or VDB")),
    responses((status = 200, body = Policy, description = "The policy"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_policy(Service(service): Service, Name(name): Name) -> Answer<Policy> {
    answer(service, move |service| service.show_policy(&name)).await
}

/// Changes the policy of a dSource or VDB; what it no longer keeps goes soon after.
#[utoipa::path(
    post,
    path = routes::POLICY,
    tag = "policies",
    params(("name" = String, Path, description = "The name of a dSource or VDB")),
    request_body = SetPolicy,
    responses((status = 200, body = Policy, description = "The policy as it is now"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn set_policy(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<SetPolicy>,
) -> Answer<Policy> {
    answer(service, move |service| service.set_policy(&name, request)).await
}
