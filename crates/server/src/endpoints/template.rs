//! Templates.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Answer, answer};
use offshoot_api::{ErrorBody, ProvisionVdb, SetTemplate, Template, TemplateList, routes};

/// Keeps a request to provision a VDB, under its name, for VDBs to be made by.
#[utoipa::path(
    post,
    path = routes::TEMPLATES,
    tag = "templates",
    request_body = ProvisionVdb,
    responses((status = 200, body = Template, description = "The template"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_template(
    Service(service): Service,
    Body(request): Body<ProvisionVdb>,
) -> Answer<Template> {
    answer(service, move |service| service.templates().create_template(request)).await
}

/// All templates that one may see, by name.
#[utoipa::path(
    get,
    path = routes::TEMPLATES,
    tag = "templates",
    responses((status = 200, body = TemplateList, description = "The templates"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_templates(Service(service): Service) -> Answer<TemplateList> {
    let listed = answer(service, |service| {
        service.templates().list_templates().map(|templates| TemplateList { templates })
    });
    listed.await
}

/// One template.
#[utoipa::path(
    get,
    path = routes::TEMPLATE,
    tag = "templates",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Template, description = "The template"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_template(Service(service): Service, Name(name): Name) -> Answer<Template> {
    answer(service, move |service| service.templates().show_template(&name)).await
}

/// Changes a template. VDBs that were made by it stay as they are.
#[utoipa::path(
    post,
    path = routes::TEMPLATE,
    tag = "templates",
    params(("name" = String, Path, description = "Its name")),
    request_body = SetTemplate,
    responses((status = 200, body = Template, description = "The template"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn set_template(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<SetTemplate>,
) -> Answer<Template> {
    answer(service, move |service| service.templates().set_template(&name, request)).await
}

/// Removes a template. VDBs that were made by it stay.
#[utoipa::path(
    delete,
    path = routes::TEMPLATE,
    tag = "templates",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Template, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_template(
    Service(service): Service,
    Name(name): Name,
) -> Answer<Template> {
    answer(service, move |service| service.templates().delete_template(&name)).await
}
