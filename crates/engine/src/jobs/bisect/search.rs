//! The search: between two moments on different sides of the change, others are opened until one commit is left.
//!
//! While the two are far apart, moments are opened where an image is near: these open soonest. Once the log between is
//! short enough to be read, it tells which commits can have changed the answer at all, by what the answers were read
//! from; the search goes on among those, and at the end opens both sides of the last one, so that nothing rests on
//! that alone.

use super::opened::{OPENED_AT_ONCE, Opened, Opener, PLACES};
use super::{FROM, Input, TO, inquirer};
use crate::core::kind::Kind;
use crate::following::follower::Follower;
use crate::history::moments::{History, Resolved, position_at};
use crate::parts::Context;
use offshoot_connector::{Inquirer, Reads, Suspect};
use offshoot_domain::{Answered, Bisection, ChangeFound, Dsource, Position};
use offshoot_os::spawn_or_run;
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::sync::Arc;

/// Log that is read for what its commits wrote, at most.
const READ_BYTES_MAX: u64 = 1 << 30;
/// While so much log is between, moments are opened at images, not exactly in the middle.
const FAR_BYTES: u64 = 32 << 20;

/// A search under way.
struct Search<'a> {
    opener: Opener<'a>,
    inquirer: &'a dyn Inquirer,
    follower: Arc<Follower>,
    /// Where images are, in order.
    images: Vec<LogPosition>,
    low: Opened,
    high: Opened,
    opened: u32,
    /// What all answers were read from.
    reads: Reads,
    /// Commits after `low` that can have changed the answer, where the log was read for it.
    suspects: Option<Vec<Suspect>>,
    /// Whether the log tells nothing: the answer changed where none of these was.
    reads_mislead: bool,
}

/// Searches.
pub fn run(context: &Context) -> Result<Bisection, Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let started = parts.elapsed_ms();
    let source: Dsource = parts.catalog.get(input.source)?;
    let kind = Kind::of_dsource(parts, &source)?;
    let (from, to): (Resolved, Resolved) = (context.need(FROM)?, context.need(TO)?);
    let timeflow = from.timeflow;
    let follower = match timeflow {
        Some(id) => parts.log_of(&source, id)?,
        None => parts.need_follower(&source)?,
    };
    let history = History::of_timeflow(parts, &source, timeflow.or(source.timeflow))?;
    let opener = Opener { context, input: &input, kind: &kind, source: &source, timeflow };
    context.progress(0, 0, "moments");
    let [low, high] = both_ends(&opener, dated(&history, &from), dated(&history, &to))?;
    let answered = |one: &Opened| Answered { at: one.at, answer: one.reply.answer.clone() };
    let mut bisection = Bisection {
        database: low.reply.database.clone(),
        from: answered(&low),
        to: answered(&high),
        found: None,
        commits: follower.log().count_between(low.at.log, high.at.log)?,
        opened: 2,
        took_ms: 0,
    };
    let met = |one: &Opened| input.condition.met(&one.reply.answer, &bisection.from.answer);
    if !met(&low) && met(&high) {
        let mut search = Search {
            inquirer: inquirer(&kind)?,
            images: history.snapshots.iter().map(|one| one.position.log).collect(),
            opened: 2,
            reads: Reads::default(),
            suspects: None,
            reads_mislead: false,
            opener,
            follower,
            low,
            high,
        };
        let found = search.narrow(&bisection.from)?;
        bisection.opened = search.opened;
        bisection.found = Some(found);
    }
    bisection.took_ms = parts.elapsed_ms() - started;
    Ok(bisection)
}

/// Where an end is. Before the first commit that is kept no commit has a time: the snapshot has one.
fn dated(history: &History, end: &Resolved) -> Position {
    let base = history.snapshots.iter().find(|one| one.id == end.snapshot);
    let least = base.map(|one| one.position.time).unwrap_or_default();
    Position { time: end.position.time.max(least), ..end.position }
}

fn both_ends(opener: &Opener<'_>, from: Position, to: Position) -> Result<[Opened; 2], Failure> {
    let ends = open_all(opener, &[(0, from), (1, to)])?;
    ends.try_into().map_err(|_| Failure::internal("a search has two ends"))
}

/// Opens moments side by side.
fn open_all(opener: &Opener<'_>, places: &[(usize, Position)]) -> Result<Vec<Opened>, Failure> {
    std::thread::scope(|scope| {
        let opening: Vec<_> = places
            .iter()
            .map(|(place, at)| spawn_or_run(scope, move || opener.open(*place, *at)))
            .collect();
        // All are waited for, so that what they have opened is noted.
        let opened: Vec<_> = opening.into_iter().map(|one| one.join()).collect();
        let failed = |_| Err(Failure::internal("a thread that opened a moment panicked"));
        opened.into_iter().map(|one| one.unwrap_or_else(failed)).collect()
    })
}

impl Search<'_> {
    /// Opens moments until one commit is between those that are held.
    fn narrow(&mut self, first: &Answered) -> Result<ChangeFound, Failure> {
        for reply in [&self.low.reply, &self.high.reply] {
            self.reads.extend(&reply.reads);
        }
        loop {
            self.opener.context.check_cancelled()?;
            let left = self.between(self.low.at.log, self.high.at.log)?;
            if left == 0 {
                return Err(changes_by_itself());
            }
            if left == 1 {
                self.tell(left)?;
                return self.found();
            }
            self.look_for_suspects()?;
            self.tell(left)?;
            let points = self.points(left)?;
            self.open(&points, first)?;
        }
    }

    fn between(&self, from: LogPosition, to: LogPosition) -> Result<u64, Failure> {
        self.follower.log().count_between(from, to)
    }

    /// Where the commit ends that so many others after `low` come before.
    fn skip(&self, others: u64) -> Result<LogPosition, Failure> {
        let found = self.follower.log().skip_after(self.low.at.log, others)?;
        found.map(|commit| commit.end).ok_or_else(log_is_gone)
    }

    fn tell(&self, left: u64) -> Result<(), Failure> {
        let context = self.opener.context;
        context.progress(u64::from(self.opened), 0, "moments");
        let (from, to) = (self.low.at.time, self.high.at.time);
        let can = match &self.suspects {
            Some(suspects) if left > 1 && !self.reads_mislead => {
                format!(", of which {} can have changed the answer", suspects.len())
            }
            _ => String::new(),
        };
        context.note(format!(
            "between {from:.3} and {to:.3}: {left} commits left{can}, {} moments opened",
            self.opened
        ))
    }

    /// Reads the log for commits that can have changed the answer, once it is short enough.
    fn look_for_suspects(&mut self) -> Result<(), Failure> {
        let (low, high) = (self.low.at.log, self.high.at.log);
        if let Some(suspects) = &mut self.suspects {
            suspects.retain(|one| one.end > low && one.end <= high);
            return Ok(());
        }
        if self.reads_mislead || high.bytes_since(low) > READ_BYTES_MAX {
            return Ok(());
        }
        self.reads.begun_before = self.low.reply.reads.begun_before;
        let context = self.opener.context;
        let log = self.follower.log();
        let tick = &mut || context.check_cancelled();
        let suspects = self.inquirer.suspects(log, (low, high), &self.reads, tick);
        self.suspects = match suspects {
            Err(failure) if failure.code != ErrorKind::Cancelled => {
                tracing::warn!(job = %context.job_id(), %failure, "the log does not tell what changed");
                None
            }
            suspects => suspects?,
        };
        match &mut self.suspects {
            Some(suspects) => suspects.retain(|one| one.end > low),
            None => self.reads_mislead = true,
        }
        Ok(())
    }

    /// Which moments to open next: at least one, none of them an end.
    fn points(&mut self, left: u64) -> Result<Vec<LogPosition>, Failure> {
        if self.suspects.as_ref().is_some_and(Vec::is_empty) {
            self.suspects = None;
            self.reads_mislead = true;
        }
        let mut points = match &self.suspects {
            Some(suspects) => self.among(suspects)?,
            None => self.by_count(left)?,
        };
        let (low, high) = (self.low.at.log, self.high.at.log);
        points.retain(|at| *at > low && *at < high);
        points.sort_unstable();
        points.dedup();
        if points.is_empty() {
            points.push(self.skip((left / 2).saturating_sub(1))?);
        }
        Ok(points)
    }

    /// Of the commits that can have changed the answer, the likely ones first, in equal parts; where much log is between, at
    /// the image that parts them best. Of the last one, both sides.
    fn among(&self, suspects: &[Suspect]) -> Result<Vec<LogPosition>, Failure> {
        // The others are looked at when none of these is left.
        let any_likely = suspects.iter().any(|one| one.likely);
        let wanted = suspects.iter().filter(|one| one.likely || !any_likely);
        let suspects: Vec<LogPosition> = wanted.map(|one| one.end).collect();
        if let [last] = suspects.as_slice() {
            let rank = self.between(self.low.at.log, *last)?;
            let before = match rank.checked_sub(2) {
                Some(others) => self.skip(others)?,
                None => self.low.at.log,
            };
            return Ok(vec![before, *last]);
        }
        let parts = OPENED_AT_ONCE + 1;
        let reach = (suspects.len() / (2 * parts)) as u64;
        let nth = |part: usize| {
            let rank = (suspects.len() * part / parts).max(1);
            let exact = suspects.get(rank - 1).copied().ok_or_else(log_is_gone)?;
            let others = |image: LogPosition| {
                suspects.partition_point(|end| *end <= image).abs_diff(rank) as u64
            };
            Ok(self.near_image(others, reach)?.unwrap_or(exact))
        };
        (1..parts).map(nth).collect()
    }

    /// In equal parts, by commits; where much log is between, at the image that is nearest.
    fn by_count(&self, left: u64) -> Result<Vec<LogPosition>, Failure> {
        let parts = OPENED_AT_ONCE as u64 + 1;
        let (low, high) = (self.low.at.log, self.high.at.log);
        let reach = high.bytes_since(low) / (2 * parts);
        let mut points = Vec::new();
        for part in 1..parts {
            let exact = self.skip((left * part / parts).max(1) - 1)?;
            let from = |image: LogPosition| image.0.abs_diff(exact.0);
            points.push(self.near_image(from, reach)?.unwrap_or(exact));
        }
        Ok(points)
    }

    /// While much log is between: the last commit of the image that is nearest, if it is within reach.
    fn near_image(
        &self,
        distance: impl Fn(LogPosition) -> u64,
        reach: u64,
    ) -> Result<Option<LogPosition>, Failure> {
        let (low, high) = (self.low.at.log, self.high.at.log);
        if high.bytes_since(low) <= FAR_BYTES {
            return Ok(None);
        }
        let between = self.images.iter().filter(|image| **image > low && **image < high);
        let near = between.map(|image| (distance(*image), *image)).min();
        match near.filter(|(distance, _)| *distance <= reach) {
            Some((_, image)) => self.last_commit_at(image),
            None => Ok(None),
        }
    }

    /// The end of the last commit that an image has.
    fn last_commit_at(&self, image: LogPosition) -> Result<Option<LogPosition>, Failure> {
        let last = self.follower.log().last_at(LogPosition(image.0.saturating_sub(1)))?;
        Ok(last.map(|commit| commit.end).filter(|end| *end <= image))
    }

    /// Opens moments and keeps the two that the change is between.
    fn open(&mut self, points: &[LogPosition], first: &Answered) -> Result<(), Failure> {
        let held = [self.low.place, self.high.place];
        let free = (0..PLACES).filter(|place| !held.contains(place));
        let at = |log: LogPosition| position_at(&self.follower, log, self.low.at.time);
        let places = free.zip(points).map(|(place, point)| Ok((place, at(*point)?)));
        let places = places.collect::<Result<Vec<_>, Failure>>()?;
        let opened = open_all(&self.opener, &places)?;
        self.opened += opened.len() as u32;
        let known = self.reads.clone();
        for one in &opened {
            self.reads.extend(&one.reply.reads);
        }
        if self.reads != known {
            // What was left out may matter to these answers.
            self.suspects = None;
        }
        let condition = &self.opener.input.condition;
        for one in opened {
            if condition.met(&one.reply.answer, &first.answer) {
                self.high = one;
                break;
            }
            self.low = one;
        }
        Ok(())
    }

    /// The one commit that is left.
    fn found(&self) -> Result<ChangeFound, Failure> {
        let (low, high, log) = (&self.low, &self.high, self.follower.log());
        let commit = log.skip_after(low.at.log, 0)?.ok_or_else(log_is_gone)?;
        let context = self.opener.context;
        let servers = (&*low.server, &*high.server);
        let tick = &mut || context.check_cancelled();
        let changes = self.inquirer.changes(log, &commit, servers, tick)?;
        let (before, after) = (low.reply.answer.clone(), high.reply.answer.clone());
        Ok(ChangeFound { commit, before, after, changes })
    }
}

fn log_is_gone() -> Failure {
    Failure::new(
        ErrorKind::MomentUnavailable,
        "the log between the ends is not kept any more",
        "choose a later --from",
    )
}

fn changes_by_itself() -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        "the answer changes though nothing was committed: it depends on more than the data",
        "ask without now(), random() and the like",
    )
}
