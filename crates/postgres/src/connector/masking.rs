//! Masking of copies.

use super::host::Postgres;
use super::server::RunningServer;
use crate::masker::{self, Doors, States};
use offshoot_connector::{
    DataDir, DiscoveryTick, Masked, Masker, Masking, MaskingTick, Preview, Renewal, Renewed,
    RulesChecked, Server,
};
use offshoot_domain::{Discovered, Secret};
use offshoot_masking::Ruleset;
use offshoot_types::Failure;
use std::sync::Arc;

impl Masker for Postgres {
    fn read(&self, rules: &str) -> Result<Box<dyn Masking>, Failure> {
        Ok(Box::new(Rules(Ruleset::parse(rules)?)))
    }

    fn discover(
        &self,
        server: &dyn Server,
        sample: u32,
        tick: &mut DiscoveryTick<'_>,
    ) -> Result<Discovered, Failure> {
        let door = RunningServer::door(server)?;
        masker::discover(&door, sample, tick)
    }
}

/// A ruleset for the tables of a cluster.
struct Rules(Ruleset);

impl Masking for Rules {
    fn key_name(&self) -> &str {
        self.0.key_name()
    }

    fn check(&self, server: &dyn Server) -> Result<RulesChecked, Failure> {
        let door = RunningServer::door(server)?;
        masker::check(&door, &self.0)
    }

    fn preview(
        &self,
        server: &dyn Server,
        key: &Secret,
        table: &str,
        rows: u32,
    ) -> Result<Preview, Failure> {
        let door = RunningServer::door(server)?;
        masker::preview(&door, &self.0, key, table, rows)
    }

    fn mask(
        &self,
        server: &dyn Server,
        key: &Secret,
        tick: &mut MaskingTick<'_>,
    ) -> Result<Masked, Failure> {
        let files = RunningServer::of(server)?.files();
        masker::mask(&RunningServer::door(server)?, files, &self.0, key, tick)
    }

    fn renew(
        &self,
        renewal: Renewal<'_, '_>,
        key: &Secret,
        tick: &mut MaskingTick<'_>,
    ) -> Result<Renewed, Failure> {
        let compared = renewal.compared;
        let masked = RunningServer::door(renewal.masked)?;
        let before = RunningServer::door(compared.left.server)?;
        let now = RunningServer::door(compared.right.server)?;
        let doors = Doors { masked: &masked, before: &before, now: &now };
        let files = RunningServer::of(renewal.masked)?.files();
        let states = States {
            files: (&*compared.left.files, &*compared.right.files),
            differing: compared.differing,
            ancestors: &mut *compared.ancestors,
        };
        masker::renew(doors, files, (states, renewal.earlier), (&self.0, key), tick)
    }

    fn finish(&self, files: &Arc<dyn DataDir>) -> Result<(), Failure> {
        masker::finish(&**files)
    }
}
