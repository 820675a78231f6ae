//! Questions to copies.

use super::host::Postgres;
use super::log::WalLog;
use super::server::RunningServer;
use crate::inquiry;
use offshoot_connector::{Inquirer, Question, Reads, ReceivedLog, Reply, Server, Suspect};
use offshoot_domain::{FoundCommit, TransactionChanges};
use offshoot_types::{Failure, LogPosition};
use std::any::Any;

fn wal(log: &dyn ReceivedLog) -> Result<&WalLog, Failure> {
    (log as &dyn Any)
        .downcast_ref()
        .ok_or_else(|| Failure::internal("the log of another connector"))
}

impl Inquirer for Postgres {
    fn ask(&self, server: &dyn Server, question: &Question) -> Result<Reply, Failure> {
        RunningServer::of(server)?.with(|server| inquiry::ask(server, question))
    }

    fn suspects(
        &self,
        log: &dyn ReceivedLog,
        (from, to): (LogPosition, LogPosition),
        reads: &Reads,
        tick: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Option<Vec<Suspect>>, Failure> {
        inquiry::suspects(wal(log)?.archive(), (from.into(), to.into()), reads, tick)
    }

    fn changes(
        &self,
        log: &dyn ReceivedLog,
        commit: &FoundCommit,
        (before, after): (&dyn Server, &dyn Server),
        tick: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<TransactionChanges, Failure> {
        let log = wal(log)?;
        let (begin, commit) = log.commit_before(commit.end)?;
        RunningServer::of(before)?.with(|before| {
            RunningServer::of(after)?.with(|after| {
                inquiry::changes(log.archive(), begin, &commit, &[before, after], tick)
            })
        })
    }
}
