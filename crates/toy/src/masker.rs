//! Masks values by their keys.

use crate::journal::Journal;
use crate::server::ToyServer;
use crate::state::JOURNAL;
use offshoot_connector::{
    DataDir, DiscoveryTick, Masked, MaskedTable, Masker, Masking, MaskingTick, Preview, Renewal,
    Renewed, RulesChecked, Server, TableState,
};
use offshoot_domain::{Discovered, MaskedTableFacts, Secret};
use offshoot_types::{ErrorKind, Failure};
use std::any::Any;
use std::sync::Arc;

/// The key that rules mask with which name none.
const KEY: &str = "main";

/// A rule is a line: the first letters of the keys whose values are masked. A first line `key=NAME` names the key
/// to mask with.
#[derive(Debug)]
pub(crate) struct ByPrefix;

impl Masker for ByPrefix {
    fn read(&self, rules: &str) -> Result<Box<dyn Masking>, Failure> {
        let mut lines = rules.lines().map(str::trim).peekable();
        let key = lines.next_if(|line| line.starts_with("key=")).map(|line| line[4..].to_owned());
        let prefixes: Vec<String> = lines.map(str::to_owned).collect();
        match prefixes.iter().find(|one| one.is_empty() || one.contains(' ')) {
            Some(bad) => Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("'{bad}' is no rule"),
                "write one prefix of keys on each line",
            )),
            None => Ok(Box::new(Prefixes { key: key.unwrap_or_else(|| KEY.to_owned()), prefixes })),
        }
    }

    /// Its keys tell nothing.
    fn discover(
        &self,
        server: &dyn Server,
        _: u32,
        tick: &mut DiscoveryTick<'_>,
    ) -> Result<Discovered, Failure> {
        toy(server)?.keys()?;
        tick(1, 1)?;
        Ok(Discovered::default())
    }
}

struct Prefixes {
    key: String,
    prefixes: Vec<String>,
}

impl Prefixes {
    fn idle(&self, server: &ToyServer) -> Result<Vec<String>, Failure> {
        let mut idle = self.prefixes.clone();
        for key in server.keys()? {
            idle.retain(|prefix| !key.starts_with(prefix));
        }
        Ok(idle)
    }
}

fn toy(server: &dyn Server) -> Result<&ToyServer, Failure> {
    (server as &dyn Any)
        .downcast_ref()
        .ok_or_else(|| Failure::internal("the server of another connector"))
}

impl Masking for Prefixes {
    fn key_name(&self) -> &str {
        &self.key
    }

    fn check(&self, server: &dyn Server) -> Result<RulesChecked, Failure> {
        Ok(RulesChecked { idle: self.idle(toy(server)?)?, ..RulesChecked::default() })
    }

    fn preview(
        &self,
        server: &dyn Server,
        _: &Secret,
        table: &str,
        _: u32,
    ) -> Result<Preview, Failure> {
        toy(server)?.keys()?;
        Ok(Preview { table: table.to_owned(), columns: Vec::new(), rows: Vec::new() })
    }

    fn mask(
        &self,
        server: &dyn Server,
        key: &Secret,
        tick: &mut MaskingTick<'_>,
    ) -> Result<Masked, Failure> {
        let server = toy(server)?;
        let idle = self.idle(server)?;
        let waiting = |prefix: &String| MaskedTable {
            name: prefix.clone(),
            rows: 0,
            rows_total: 0,
            state: TableState::Waiting,
        };
        let mut masked = Masked {
            tables: self.prefixes.iter().map(waiting).collect(),
            idle,
            ..Masked::default()
        };
        for at in 0..masked.tables.len() {
            masked.tables[at].state = TableState::Running;
            tick(&masked.tables)?;
            let values = server.mask(&masked.tables[at].name, key)?;
            let table = &mut masked.tables[at];
            (table.rows, table.rows_total, table.state) = (values, values, TableState::Done);
            masked.values += values;
            masked.facts.tables.push(MaskedTableFacts {
                name: table.name.clone(),
                rows_before: values,
                rows_after: values,
                ..MaskedTableFacts::default()
            });
        }
        tick(&masked.tables)?;
        Ok(masked)
    }

    /// The state now is masked by its own server, which nobody keeps, and its values are set in the masked copy.
    fn renew(
        &self,
        renewal: Renewal<'_, '_>,
        key: &Secret,
        tick: &mut MaskingTick<'_>,
    ) -> Result<Renewed, Failure> {
        let now = renewal.compared.right.server;
        let done = self.mask(now, key, tick)?;
        let masked = toy(renewal.masked)?;
        let (wanted, present) = (toy(now)?.data()?, masked.data()?);
        if present.keys().any(|key| !wanted.contains_key(key)) {
            return Ok(Renewed::InFull("a key is gone".to_owned()));
        }
        for (key, value) in wanted.iter().filter(|(key, value)| present.get(*key) != Some(*value)) {
            masked.set(key, value)?;
        }
        Ok(Renewed::Done(done))
    }

    /// The journal has every value that ever was; a checkpoint needs none of it.
    fn finish(&self, files: &Arc<dyn DataDir>) -> Result<(), Failure> {
        let journal = Journal::new(files.clone(), JOURNAL);
        let removed = journal.numbers().and_then(|numbers| {
            numbers.iter().try_for_each(|number| files.remove(&journal.path(*number)))
        });
        removed
            .map_err(|error| Failure::internal(format!("the journal cannot be removed: {error}")))
    }
}
