//! What differs between copies.

use super::host::Postgres;
use super::server::RunningServer;
use crate::differ;
use offshoot_connector::{Compared, DiffTick, DiffWanted, Differ, Differences};
use offshoot_types::Failure;

impl Differ for Postgres {
    fn diff(
        &self,
        compared: &mut Compared<'_>,
        wanted: &DiffWanted,
        tick: &mut DiffTick<'_>,
    ) -> Result<Differences, Failure> {
        let (left, right) = (
            RunningServer::door(compared.left.server)?,
            RunningServer::door(compared.right.server)?,
        );
        differ::diff((&left, &right), compared, wanted, tick)
    }
}
