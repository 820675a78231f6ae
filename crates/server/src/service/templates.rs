//! What can be asked of templates.

use offshoot_api::{ProvisionVdb, SetTemplate, Template};
use offshoot_types::Failure;

/// What VDBs are to be like. Methods may block.
pub trait Templates {
    /// Keeps a request under its name.
    fn create_template(&self, request: ProvisionVdb) -> Result<Template, Failure>;
    /// All that the caller may see, by name.
    fn list_templates(&self) -> Result<Vec<Template>, Failure>;
    /// One template.
    fn show_template(&self, name: &str) -> Result<Template, Failure>;
    /// Changes a template.
    fn set_template(&self, name: &str, request: SetTemplate) -> Result<Template, Failure>;
    /// Removes a template.
    fn delete_template(&self, name: &str) -> Result<Template, Failure>;
}
