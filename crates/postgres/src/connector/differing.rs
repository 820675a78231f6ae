//! What differs between copies.

use super::host::Postgres;
use super::server::RunningServer;
use crate::differ;
use crate::masker::Door;
use offshoot_connector::{Compared, DiffTick, DiffWanted, Differ, Differences, Server};
use offshoot_types::Failure;

impl Differ for Postgres {
    fn diff(
        &self,
        compared: &mut Compared<'_>,
        wanted: &DiffWanted,
        tick: &mut DiffTick<'_>,
    ) -> Result<Differences, Failure> {
        let (left, right) = (door(compared.left.server)?, door(compared.right.server)?);
        differ::diff((&left, &right), compared, wanted, tick)
    }
}

fn door(server: &dyn Server) -> Result<Door, Failure> {
    Ok(RunningServer::of(server)?.with(|server| Door::of(server.spec())))
}
