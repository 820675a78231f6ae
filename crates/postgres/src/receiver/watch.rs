//! The thread that proves how complete the archive is.
//!
//! A *target* is a pair of the source's clock and a later end of its log; once the slot shows that
//! all of that log is durable here, or whole files hold it, the pair is a proof. Details that make it
//! one:
//! - a commit gets its time shortly before its place in the log, so we ask for the log's end a
//!   little after the clock ([`SETTLE`]);
//! - asynchronous commits are flushed up to three rounds of the log writer after they got their
//!   place: so the flushed end must have passed the written end of that moment, or that much time
//!   must have passed;
//! - `pg_receivewal` confirms when it has read all that was sent, which a busy source may put off for
//!   minutes; but each file is durable before it gets the name of a whole one.

use crate::lsn::Lsn;
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure};
use std::collections::VecDeque;
use std::time::Duration;

use super::{ReceiverState, Shared, SyncedTo, gap};
use crate::slot::{SlotState, slot_state};
use crate::source::Session;

/// How often to seek a proof when nobody asks.
const ROUND: Duration = Duration::from_secs(1);
/// Between the source's clock and the end of its log.
const SETTLE: Duration = Duration::from_millis(25);
/// The pause between two checks of the slot: from … to.
const LOOK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// The pause after a failed connection.
const RECONNECT: Duration = Duration::from_millis(500);
/// Most targets that wait for their log.
const TARGETS_MAX: usize = 120;

/// The longest that the source may take to tell its clock, for that to be compared with ours.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// A page of the log in bytes, or part of one if the server was built with larger pages.
const PAGE_LEN: u64 = 8192;
/// Length of the header of a file's first page in bytes; others have 24. A record has at least 24.
const HEADER_LEN_MAX: u64 = 40;

/// What the archive must hold before a time is proved.
struct Target {
    synced_to: SyncedTo,
    /// When it was taken, at our clock.
    taken_at: Duration,
    /// The last caller it answers.
    ticket: u64,
}

/// Seeks proofs until the receiver is stopped or there is a gap.
pub(super) fn run(shared: &Shared) {
    while !shared.must_end() {
        let watched = shared.spec.source.connect().and_then(|session| watch(shared, &session));
        if let Err(failure) = watched {
            tracing::debug!("the source cannot be asked: {failure}");
            shared.rest(RECONNECT);
        }
    }
}

/// Seeks proofs by one session.
fn watch(shared: &Shared, session: &Session) -> Result<(), Failure> {
    let writer_delay = read_writer_delay(session)?;
    let mut targets: VecDeque<Target> = VecDeque::new();
    let mut next_round = shared.clock.elapsed();
    let mut pause = LOOK.0;
    while !shared.must_end() {
        let asked = shared.facts.lock().asked;
        let taken = targets.back().map(|target| target.ticket);
        let newest = taken.unwrap_or_else(|| shared.facts.lock().answered);
        if asked > newest || shared.clock.elapsed() >= next_round {
            if let Some(target) = take_target(shared, session, writer_delay, asked)? {
                targets.push_back(target);
            }
            // When far behind, the proofs in the middle are not needed.
            if targets.len() > TARGETS_MAX {
                targets.remove(TARGETS_MAX / 2);
            }
            next_round = shared.clock.elapsed() + ROUND;
            pause = LOOK.0;
        }
        let streaming = look_at_slot(shared, session, &mut targets)?;
        let waiting = !targets.is_empty() || !streaming;
        pause = if waiting { (pause * 2).min(LOOK.1) } else { ROUND };
        let left = next_round.saturating_sub(shared.clock.elapsed());
        shared.rest_while(pause.min(left), |facts| facts.asked == asked);
    }
    Ok(())
}

/// The pause of the source's log writer between two rounds.
fn read_writer_delay(session: &Session) -> Result<Duration, Failure> {
    let row = session
        .row("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_writer_delay'")?;
    let text = row.into_iter().next().flatten().unwrap_or_default();
    Ok(Duration::from_millis(text.parse().unwrap_or(200)))
}

/// The source's clock, and the written and the flushed end of its log. A standby's clock is that of
/// the last commit it replayed: later ones may be on their way. One that has replayed none since its
/// start, as its primary writes nothing, has all commits from before its last checkpoint, whose time is in
/// whole seconds.
const POSITION: &str = "
    SELECT pg_catalog.to_char((CASE WHEN pg_catalog.pg_is_in_recovery()
                              THEN coalesce(pg_catalog.pg_last_xact_replay_timestamp(),
                                            (SELECT checkpoint_time - '1s'::pg_catalog.interval
                                               FROM pg_catalog.pg_control_checkpoint()))
                         ELSE pg_catalog.clock_timestamp() END) AT TIME ZONE 'UTC',
                   'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),
           CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                ELSE pg_catalog.pg_current_wal_insert_lsn() END,
           CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                ELSE pg_catalog.pg_current_wal_flush_lsn() END,
           pg_catalog.pg_is_in_recovery()";

struct Position {
    time: Option<Timestamp>,
    written: Lsn,
    flushed: Lsn,
    /// Whether the time is that of a commit, not the clock's.
    standby: bool,
}

fn read_position(session: &Session) -> Result<Position, Failure> {
    let row = session.row(POSITION)?;
    let text = |column: usize| row.get(column).and_then(|value| value.as_deref());
    let lsn = |column: usize| text(column).and_then(|text| text.parse::<Lsn>().ok());
    let (Some(written), Some(flushed)) = (lsn(1), lsn(2)) else {
        return Err(Failure::new(
            ErrorKind::SourceRefused,
            "the source does not tell where its log ends",
            "",
        ));
    };
    let standby = text(3) != Some("f");
    Ok(Position { time: text(0).and_then(|text| text.parse().ok()), written, flushed, standby })
}

/// Takes a new target; `None` if the source has no time to report yet.
fn take_target(
    shared: &Shared,
    session: &Session,
    writer_delay: Duration,
    ticket: u64,
) -> Result<Option<Target>, Failure> {
    let taken_at = shared.clock.elapsed();
    let first = read_position(session)?;
    let Some(time) = first.time else { return Ok(None) };
    if !first.standby {
        compare_clocks(shared, time, shared.clock.elapsed().saturating_sub(taken_at));
    }
    shared.rest(SETTLE);
    let position = read_position(session)?;
    shared.heard();
    let mut flushed = position.flushed;
    let patience = shared.clock.elapsed() + writer_delay * 3 + SETTLE * 4;
    let lacks = |flushed| !covers(flushed, position.written);
    while lacks(flushed) && shared.clock.elapsed() < patience && !shared.must_end() {
        shared.rest(LOOK.0);
        flushed = read_position(session)?.flushed;
        shared.heard();
    }
    shared.facts.lock().source_flushed = Some(flushed);
    Ok(Some(Target { synced_to: SyncedTo { lsn: flushed, time }, taken_at, ticket }))
}

/// Notes how far the source's clock is ahead of ours. It was read within the last `took`, in its middle as likely as not;
/// an answer that took long says too little.
fn compare_clocks(shared: &Shared, theirs: Timestamp, took: Duration) {
    let Ok(now) = Timestamp::try_from(shared.clock.now()) else { return };
    if let Some(skew) = skew_ms(theirs, now, took) {
        shared.facts.lock().clock_skew_ms = Some(skew);
    }
}

/// By how much a clock was ahead of ours that was read within the last `took`.
fn skew_ms(theirs: Timestamp, now: Timestamp, took: Duration) -> Option<i64> {
    if took > ANSWER_MAX {
        return None;
    }
    let ours = now.checked_sub(took / 2).ok()?;
    i64::try_from(theirs.duration_since(ours).as_millis()).ok()
}

/// Whether everything written before `written` is flushed with the log up to `flushed`.
///
/// If the log ends at a page boundary, as after a backup or a switch of files, the server reports
/// that boundary as the end of what is flushed, but the place after the next page's header as the end
/// of what is written. No record is short enough to fit between them.
fn covers(flushed: Lsn, written: Lsn) -> bool {
    let header =
        flushed.0.is_multiple_of(PAGE_LEN) && written.0.saturating_sub(flushed.0) <= HEADER_LEN_MAX;
    flushed >= written || header
}

/// Reads what was confirmed and turns the targets that it covers into proofs; returns whether we
/// stream.
fn look_at_slot(
    shared: &Shared,
    session: &Session,
    targets: &mut VecDeque<Target>,
) -> Result<bool, Failure> {
    let slot = slot_state(session, &shared.spec.slot)?;
    shared.heard();
    let (restart_lsn, active, safe_bytes) = match slot {
        SlotState::Reserved { restart_lsn, active, safe_bytes } => {
            (restart_lsn, active, safe_bytes)
        }
        SlotState::Lost => {
            let why = format!("the slot {} is lost", shared.spec.slot);
            shared.set_state(ReceiverState::Gap(gap(&why)));
            return Ok(false);
        }
        // The stream thread creates it.
        SlotState::Missing => return Ok(false),
    };
    let mut facts = shared.facts.lock();
    let streaming = active && facts.child_runs;
    facts.slot_safe_bytes = safe_bytes;
    if !streaming || facts.unconfirmed == Some(restart_lsn) {
        drop(facts);
        if streaming {
            shared.set_state(ReceiverState::Streaming);
        }
        return Ok(streaming);
    }
    facts.unconfirmed = None;
    // After a reconnection the log of the last file comes again, so the slot goes back a little;
    // what was confirmed stays durable.
    let confirmed = facts.received.map_or(restart_lsn, |known| known.max(restart_lsn));
    let received = facts
        .timeline
        .map_or(confirmed, |timeline| shared.spec.archive.end_of_whole_files(timeline, confirmed));
    facts.received = Some(received);
    let mut proved = false;
    while let Some(target) = targets.pop_front_if(|target| target.synced_to.lsn <= received) {
        if facts.synced_to.is_none_or(|known| known.time <= target.synced_to.time) {
            facts.synced_to = Some(target.synced_to);
            facts.synced_at = target.taken_at;
        }
        facts.answered = facts.answered.max(target.ticket);
        proved = true;
    }
    drop(facts);
    shared.set_state(ReceiverState::Streaming);
    if proved {
        shared.changed.notify_all();
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
