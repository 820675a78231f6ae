//! The templates of the stand-in.

use super::{StandIn, missing, taken, time};
use offshoot_api::{ProvisionVdb, SetTemplate, Template};
use offshoot_server::Templates;
use offshoot_types::{Failure, TemplateId};

impl Templates for StandIn {
    fn create_template(&self, request: ProvisionVdb) -> Result<Template, Failure> {
        let mut state = self.lock();
        if state.templates.contains_key(&request.name) {
            return Err(taken(&request.name));
        }
        let (name, id) = (request.name.clone(), TemplateId(state.templates.len() as u64 + 1));
        let request = ProvisionVdb { hooks: Vec::new(), ..request };
        let (hooks, created_at) = (Vec::new(), time());
        let template = Template { id, name: name.clone(), request, hooks, created_at };
        state.templates.insert(name, template.clone());
        Ok(template)
    }

    fn list_templates(&self) -> Result<Vec<Template>, Failure> {
        Ok(self.lock().templates.values().cloned().collect())
    }

    fn show_template(&self, name: &str) -> Result<Template, Failure> {
        self.lock().templates.get(name).cloned().ok_or_else(|| missing("template", name))
    }

    fn set_template(&self, name: &str, request: SetTemplate) -> Result<Template, Failure> {
        let template = self.show_template(name)?;
        let (request, _) = request.of(&template.request)?;
        let request = ProvisionVdb { hooks: Vec::new(), ..request };
        let template = Template { name: request.name.clone(), request, ..template };
        let mut state = self.lock();
        state.templates.remove(name);
        state.templates.insert(template.name.clone(), template.clone());
        Ok(template)
    }

    fn delete_template(&self, name: &str) -> Result<Template, Failure> {
        self.lock().templates.remove(name).ok_or_else(|| missing("template", name))
    }
}
