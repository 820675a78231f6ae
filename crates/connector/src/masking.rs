//! Replacing what a copy may not show.

use crate::{Compared, DataDir, Server};
use offshoot_domain::{Discovered, MaskFacts, Secret};
use offshoot_types::Failure;
use std::fmt;
use std::sync::Arc;

/// Masks copies.
pub trait Masker: Send + Sync {
    /// Reads rules, written as this kind of database needs them: what to mask, and how.
    ///
    /// # Errors
    /// `InvalidInput` naming the rule that is not understood.
    fn read(&self, rules: &str) -> Result<Box<dyn Masking>, Failure>;

    /// Looks through a copy, by its server, for what should be masked: at names first, then at about `sample` values of
    /// each column, taken here and there. Nothing of what it returns tells a value.
    ///
    /// # Errors
    /// When the server cannot be asked; the tick's.
    fn discover(
        &self,
        server: &dyn Server,
        sample: u32,
        tick: &mut DiscoveryTick<'_>,
    ) -> Result<Discovered, Failure>;
}

/// Told how many tables were looked through, and of how many. An error ends it.
pub type DiscoveryTick<'a> = dyn FnMut(u64, u64) -> Result<(), Failure> + 'a;

/// Told how far masking has come: every table that the rules name. An error ends the masking.
pub type MaskingTick<'a> = dyn FnMut(&[MaskedTable]) -> Result<(), Failure> + 'a;

/// Rules that were understood.
pub trait Masking: Send + Sync {
    /// The name of the key that these rules mask with. Rules that name the same key give the same value the same
    /// mask.
    fn key_name(&self) -> &str;

    /// Holds the rules against a copy, by its server, and changes nothing.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn check(&self, server: &dyn Server) -> Result<RulesChecked, Failure>;

    /// Shows what the rules make of some rows of one table, and changes nothing.
    ///
    /// # Errors
    /// `InvalidInput` if the rules do not fit or name no column of the table; when a row cannot be masked, as
    /// [`Masking::mask`].
    fn preview(
        &self,
        server: &dyn Server,
        key: &Secret,
        table: &str,
        rows: u32,
    ) -> Result<Preview, Failure>;

    /// Masks a copy by its server, which has replayed all it will, has no way to its source and is reached
    /// by the engine alone. With the same key the same value gets the same mask, in any copy. A copy whose
    /// masking was cut off is discarded: it is made again from the image as taken.
    ///
    /// # Errors
    /// `InvalidInput` if the rules do not fit the copy ([`Masking::check`] says how); if anything that they name
    /// could not be masked, naming table, column and the row's key, never the value. Nobody may get the copy then.
    /// The tick's, which is called before the first table, and often.
    fn mask(
        &self,
        server: &dyn Server,
        key: &Secret,
        tick: &mut MaskingTick<'_>,
    ) -> Result<Masked, Failure>;

    /// Brings a masked copy up to date with its source, so that it shows what [`Masking::mask`] would make of the source
    /// now; of what has not changed since nothing is read. A copy whose renewal was cut off or failed is discarded.
    ///
    /// # Errors
    /// As [`Masking::mask`].
    fn renew(
        &self,
        renewal: Renewal<'_, '_>,
        key: &Secret,
        tick: &mut MaskingTick<'_>,
    ) -> Result<Renewed, Failure> {
        let _ = (renewal, key, tick);
        Ok(Renewed::InFull("databases of this kind are always masked in full".to_owned()))
    }

    /// Removes from the files of a masked copy, whose server was stopped cleanly, what could show an unmasked value:
    /// log of before, remains of statistics. What stays opens without recovery.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    fn finish(&self, files: &Arc<dyn DataDir>) -> Result<(), Failure>;
}

/// What a masked copy is brought up to date with.
pub struct Renewal<'a, 'b> {
    /// The server of a copy that these rules have masked with the same key.
    pub masked: &'a dyn Server,
    /// What was told of that.
    pub earlier: &'a MaskFacts,
    /// The state that it was masked from, and the one that it shall show.
    pub compared: &'a mut Compared<'b>,
}

/// What became of a renewal.
#[derive(Debug)]
pub enum Renewed {
    /// It is done.
    Done(Masked),
    /// Everything has to be masked again, for this reason.
    InFull(String),
}

/// How rules fit a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesChecked {
    /// What keeps the rules from being applied, one line each; none: they can be.
    pub problems: Vec<String>,
    /// Rules that meet nothing.
    pub idle: Vec<String>,
    /// What looks as if it had to be masked and has no rule: the column, and why.
    pub unruled: Vec<String>,
}

/// Rows of a table as they would be masked: only columns that rules mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The table as its users name it.
    pub table: String,
    /// The columns, and how they are masked.
    pub columns: Vec<PreviewColumn>,
    /// A value for each of the columns.
    pub rows: Vec<Vec<PreviewValue>>,
}

/// A column that rules mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewColumn {
    /// Its name.
    pub name: String,
    /// The name of its algorithm.
    pub algorithm: String,
}

/// A value and its mask.
#[derive(Clone, PartialEq, Eq)]
pub struct PreviewValue {
    /// As production has it; none: NULL.
    pub before: Option<String>,
    /// Its mask; none: NULL.
    pub after: Option<String>,
    /// Whether the rules mask it; where not, `after` is the same as `before`.
    pub masked: bool,
}

/// Tells no value.
impl fmt::Debug for PreviewValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.masked { "PreviewValue(masked)" } else { "PreviewValue(kept)" })
    }
}

/// What was masked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masked {
    /// How many values were replaced.
    pub values: u64,
    /// The tables that the rules name.
    pub tables: Vec<MaskedTable>,
    /// Rules that met nothing.
    pub idle: Vec<String>,
    /// What looks as if it had to be masked and has no rule: the column, and why.
    pub unruled: Vec<String>,
    /// What a report tells of it.
    pub facts: MaskFacts,
}

/// How far a table has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedTable {
    /// The table as its users name it.
    pub name: String,
    /// Rows that were written anew.
    pub rows: u64,
    /// Rows to write, as the server estimates them.
    pub rows_total: u64,
    /// Where it stands.
    pub state: TableState,
}

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableState {
    /// Not yet begun.
    Waiting,
    /// Being masked.
    Running,
    /// Masked.
    Done,
}
