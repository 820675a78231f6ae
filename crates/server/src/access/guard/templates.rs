//! Templates as one caller sees them: a developer those of what it may make VDBs from, and those that leave that open.
//!
//! What a template has, a developer may have of it, also what it may not choose itself: operators make templates.

use super::Guard;
use crate::service::templates::Templates;
use offshoot_api::{ProvisionVdb, SetTemplate, Template};
use offshoot_types::{ErrorKind, Failure};

impl Guard {
    fn sees_template(&self, template: &Template) -> Result<bool, Failure> {
        let from = &template.request.from;
        match self.developer() {
            Some(user) if !from.is_empty() => match self.found(user, from) {
                Ok(_) => Ok(true),
                Err(failure) if failure.code == ErrorKind::NotFound => Ok(false),
                Err(failure) => Err(failure),
            },
            _ => Ok(true),
        }
    }

    /// What a VDB is to be made from, by the request itself or by its template.
    pub(super) fn parent_of(&self, request: &ProvisionVdb) -> Result<String, Failure> {
        let Some(name) = &request.template else { return Ok(request.from.clone()) };
        let Template { request: ProvisionVdb { from, .. }, .. } = self.show_template(name)?;
        match (from.is_empty(), request.from.is_empty()) {
            (true, _) => Ok(request.from.clone()),
            (false, true) => Ok(from),
            // Its rights were meant for VDBs of that.
            (false, false) if self.developer().is_some() && from != request.from => {
                let message = format!("VDBs of the template '{name}' are made from '{from}'");
                Err(Failure::new(ErrorKind::Forbidden, message, "leave out --from"))
            }
            (false, false) => Ok(request.from.clone()),
        }
    }
}

impl Templates for Guard {
    fn create_template(&self, request: ProvisionVdb) -> Result<Template, Failure> {
        self.service.templates().create_template(request)
    }

    fn list_templates(&self) -> Result<Vec<Template>, Failure> {
        let mut seen = Vec::new();
        for template in self.service.templates().list_templates()? {
            if self.sees_template(&template)? {
                seen.push(template);
            }
        }
        Ok(seen)
    }

    fn show_template(&self, name: &str) -> Result<Template, Failure> {
        let absent = || {
            let shown: String = name.chars().take(80).collect();
            let message = format!("there is no template '{shown}' that you may see");
            Failure::new(ErrorKind::NotFound, message, "list them: offshoot template list")
        };
        let found = self.service.templates().show_template(name);
        let template = found.map_err(|failure| match failure.code {
            ErrorKind::NotFound if self.developer().is_some() => absent(),
            _ => failure,
        })?;
        if self.sees_template(&template)? { Ok(template) } else { Err(absent()) }
    }

    fn set_template(&self, name: &str, request: SetTemplate) -> Result<Template, Failure> {
        self.service.templates().set_template(name, request)
    }

    fn delete_template(&self, name: &str) -> Result<Template, Failure> {
        self.service.templates().delete_template(name)
    }
}
