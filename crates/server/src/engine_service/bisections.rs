//! Searches for the commit that changed an answer, as the API shows them.

use super::moment;
use offshoot_api as api;
use offshoot_domain::{Answer, Condition, RelationChange};
use offshoot_engine::{BisectRequest, BisectionView, ShownPosition};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::time::Duration;

/// How long an answer may take where nobody says so.
const TIME_LIMIT_MS: u64 = 10_000;

pub(super) fn request(request: api::StartBisection) -> Result<BisectRequest, Failure> {
    let condition = match (request.until, request.expect) {
        (None, None) => Condition::Changes,
        (Some(value), None) => Condition::Until(value),
        (None, Some(value)) => Condition::Expect(value),
        (Some(_), Some(_)) => {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                "a change is looked for either until a value, or from one on",
                "give until or expect, not both",
            ));
        }
    };
    Ok(BisectRequest {
        object: request.object,
        from: moment(request.from)?,
        to: moment(request.to)?,
        query: request.query,
        database: request.database,
        condition,
        errors_are_answers: request.errors_are_answers,
        time_limit: Duration::from_millis(request.time_limit_ms.unwrap_or(TIME_LIMIT_MS)),
    })
}

pub(super) fn bisection(job: JobId, view: BisectionView) -> api::Bisection {
    let BisectionView { object, query, condition, bisection, from, to, commit } = view;
    let (until, expect) = match condition {
        Condition::Changes => (None, None),
        Condition::Until(value) => (Some(value), None),
        Condition::Expect(value) => (None, Some(value)),
    };
    let change = bisection.found.zip(commit).map(|(found, at)| api::ChangingCommit {
        xid: found.commit.label,
        lsn: at.log,
        time: at.time,
        before: answer(found.before),
        after: answer(found.after),
        changes: found.changes.relations.into_iter().map(relation).collect(),
        changes_whole: found.changes.whole,
    });
    api::Bisection {
        job,
        object,
        database: bisection.database,
        query,
        until,
        expect,
        from: answered(from, bisection.from.answer),
        to: answered(to, bisection.to.answer),
        change,
        commits: bisection.commits,
        moments_opened: bisection.opened,
        took_ms: bisection.took_ms,
    }
}

fn answered(at: ShownPosition, given: Answer) -> api::AnsweredMoment {
    api::AnsweredMoment { time: at.time, lsn: at.log, answer: answer(given) }
}

fn answer(answer: Answer) -> api::Answer {
    let (kind, text) = match answer {
        Answer::NoRow => (api::AnswerKind::NoRow, None),
        Answer::Null => (api::AnswerKind::Null, None),
        Answer::Value(text) => (api::AnswerKind::Value, Some(text)),
        Answer::Error(text) => (api::AnswerKind::Error, Some(text)),
    };
    api::Answer { kind, text }
}

fn relation(change: RelationChange) -> api::ChangedRelation {
    let RelationChange { database, relation, inserted, updated, deleted, rewritten } = change;
    api::ChangedRelation { database, relation, inserted, updated, deleted, rewritten }
}
