//! What users made in VDBs, as the engine takes it along.

use super::host::Postgres;
use super::server::RunningServer;
use crate::keepsakes::{self, Keepsakes as Taken};
use offshoot_connector::{Keepsakes, Server};
use offshoot_domain::{Kept, Secret};
use offshoot_types::Failure;
use std::collections::BTreeSet;

impl Keepsakes for Postgres {
    fn take(&self, server: &dyn Server, kinds: &BTreeSet<Kept>) -> Result<Secret, Failure> {
        let mut session = RunningServer::of(server)?.with(|server| server.connect())?;
        keepsakes::take(&mut session, kinds)?.written()
    }

    fn bring(
        &self,
        server: &dyn Server,
        kept: &Secret,
        superuser: bool,
    ) -> Result<Vec<String>, Failure> {
        let mut session = RunningServer::of(server)?.with(|server| server.connect())?;
        keepsakes::bring(&mut session, &Taken::read(kept)?, superuser)
    }
}
