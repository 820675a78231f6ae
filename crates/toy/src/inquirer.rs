//! Asks for the value of a key.

use crate::client::Refused;
use crate::server::{DATABASE, ToyServer};
use offshoot_connector::{Inquirer, Question, Reads, ReceivedLog, Reply, Server, Suspect};
use offshoot_domain::{Answer, FoundCommit, RelationChange, TransactionChanges};
use offshoot_types::{Failure, LogPosition};
use std::any::Any;

/// A question is a key.
#[derive(Debug)]
pub(crate) struct ByKey;

impl Inquirer for ByKey {
    fn ask(&self, server: &dyn Server, question: &Question) -> Result<Reply, Failure> {
        let server: &ToyServer = (server as &dyn Any)
            .downcast_ref()
            .ok_or_else(|| Failure::internal("the server of another connector"))?;
        let answer = match server.ask(&format!("GET {}", question.query)) {
            Ok(value) => Answer::Value(value),
            Err(Refused::Error(_)) => Answer::NoRow,
            Err(refused) => return Err(Failure::internal(refused.to_string())),
        };
        let reads = Reads { unknown: true, ..Reads::default() };
        Ok(Reply { answer, database: DATABASE.to_owned(), reads })
    }

    /// Its journal is short: any commit may be it.
    fn suspects(
        &self,
        _: &dyn ReceivedLog,
        _: (LogPosition, LogPosition),
        _: &Reads,
        _: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Option<Vec<Suspect>>, Failure> {
        Ok(None)
    }

    /// A commit sets one key.
    fn changes(
        &self,
        _: &dyn ReceivedLog,
        _: &FoundCommit,
        _: (&dyn Server, &dyn Server),
        _: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<TransactionChanges, Failure> {
        let set = RelationChange {
            database: DATABASE.to_owned(),
            relation: "keys".to_owned(),
            updated: 1,
            ..RelationChange::default()
        };
        Ok(TransactionChanges { relations: vec![set], whole: true })
    }
}
