//! Masks values by their keys.

use crate::server::ToyServer;
use offshoot_connector::{Masked, Masker, Masking, Server, Tick};
use offshoot_domain::Secret;
use offshoot_types::{ErrorKind, Failure};
use std::any::Any;

/// A rule is a line: the first letters of the keys whose values are masked.
#[derive(Debug)]
pub(crate) struct ByPrefix;

impl Masker for ByPrefix {
    fn read(&self, rules: &str) -> Result<Box<dyn Masking>, Failure> {
        let prefixes: Vec<String> = rules.lines().map(|line| line.trim().to_owned()).collect();
        match prefixes.iter().find(|one| one.is_empty() || one.contains(' ')) {
            Some(bad) => Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("'{bad}' is no rule"),
                "write one prefix of keys on each line",
            )),
            None => Ok(Box::new(Prefixes(prefixes))),
        }
    }
}

struct Prefixes(Vec<String>);

impl Masking for Prefixes {
    fn mask(
        &self,
        server: &dyn Server,
        key: &Secret,
        tick: &mut Tick<'_>,
    ) -> Result<Masked, Failure> {
        let server: &ToyServer = (server as &dyn Any)
            .downcast_ref()
            .ok_or_else(|| Failure::internal("the server of another connector"))?;
        let mut masked = Masked::default();
        for prefix in &self.0 {
            let values = server.mask(prefix, key)?;
            if values == 0 {
                masked.idle.push(prefix.clone());
            }
            masked.values += values;
            tick(values)?;
        }
        Ok(masked)
    }
}
