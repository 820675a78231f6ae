//! Users that do transactions, and what they experience.
//!
//! Closed loop: each user does the next transaction when the last is done and it has thought. Fixed
//! rate: transactions begin at moments drawn beforehand (exponential gaps), whether the database keeps
//! up or not, and their latency counts from the intended moment, so that a stall shows in every
//! transaction it delays (Tene, "How not to measure latency", 2013).

use crate::connection::reason;
use crate::order_entry::{Mix, Session, Transaction};
use crate::seed::Stream;
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use offshoot_os::{Clock, SystemClock};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest a transaction may take before its user gives up on it.
const TRANSACTION_SECONDS_MAX: u64 = 60;
/// Longest users may take to connect, all together.
const CONNECT_SECONDS_MAX: u64 = 120;
/// Different error texts that are kept.
const ERROR_KINDS_MAX: usize = 20;

/// What users do.
#[derive(Debug, Clone, Serialize)]
pub struct LoadPlan {
    /// What they do and how often.
    pub mix: Mix,
    /// How many of them, over all databases; at least one each.
    pub users: u32,
    /// For how long.
    pub seconds: u32,
    /// Milliseconds a user thinks after a transaction: from the first to the second, evenly drawn.
    pub think_ms: (u64, u64),
    /// Transactions a second over all users, begun whether or not the earlier are done; closed loop
    /// if there is none.
    pub rate: Option<f64>,
    /// Decides what they draw.
    pub seed: u64,
}

impl LoadPlan {
    /// Users that begin the next transaction as soon as one is done.
    pub fn closed_loop(mix: Mix, users: u32, seconds: u32, seed: u64) -> LoadPlan {
        LoadPlan { mix, users, seconds, think_ms: (0, 0), rate: None, seed }
    }
}

/// Latencies and errors of one kind of transaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// How many were done.
    pub count: u64,
    /// How many failed.
    pub errors: u64,
    /// Milliseconds.
    pub mean_ms: f64,
    /// Half took at most this.
    pub p50_ms: f64,
    /// Nine of ten.
    pub p90_ms: f64,
    /// 95 of 100.
    pub p95_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// What users felt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Felt {
    /// Transactions done within the time.
    pub transactions: u64,
    /// Transactions that failed.
    pub errors: u64,
    /// How often each error came, by the server's message.
    pub error_texts: BTreeMap<String, u64>,
    /// Transactions a second.
    pub tps: f64,
    /// Transactions a minute.
    pub tpm: f64,
    /// The worst whole second.
    pub per_second_min: u64,
    /// Transactions done in each whole second.
    pub per_second: Vec<u64>,
    /// Over all kinds.
    pub latency: Latency,
    /// By kind.
    pub by_kind: BTreeMap<&'static str, Latency>,
}

/// What one user saw.
struct Tally {
    histograms: BTreeMap<Transaction, Histogram<u64>>,
    errors: BTreeMap<Transaction, u64>,
    error_texts: BTreeMap<String, u64>,
    per_second: Vec<u64>,
}

/// One user's part of a load.
struct User {
    uri: String,
    plan: LoadPlan,
    stream: Stream,
    /// Gaps between its transactions have this mean where the rate is fixed.
    gap_seconds: Option<f64>,
}

/// Runs a load on databases: users are spread over them evenly.
///
/// # Errors
/// When users cannot connect. Failed transactions are counted, not returned.
pub async fn drive(uris: &[String], plan: &LoadPlan) -> Result<Felt> {
    ensure!(!uris.is_empty(), "no database to load");
    let count = (plan.users as usize).max(uris.len());
    let mut users = Vec::with_capacity(count);
    let limit = Duration::from_secs(CONNECT_SECONDS_MAX);
    for number in 0..count {
        let user = User {
            uri: uris[number % uris.len()].clone(),
            plan: plan.clone(),
            stream: Stream::of(plan.seed, &[number as u64]),
            gap_seconds: plan.rate.map(|rate| count as f64 / rate),
        };
        let opened = tokio::time::timeout(limit, Session::open(&user.uri)).await;
        users.push((user, opened.context("a user could not connect in time")??));
    }
    let begin = SystemClock.elapsed();
    let tasks: Vec<_> =
        users.into_iter().map(|(user, session)| tokio::spawn(user.work(session, begin))).collect();
    let mut total = Tally::new(plan.seconds);
    for task in tasks {
        total.add(task.await.context("a user ended")?);
    }
    Ok(total.felt(plan.seconds))
}

impl User {
    async fn work(mut self, session: Session, begin: Duration) -> Tally {
        let clock = SystemClock;
        let end = begin + Duration::from_secs(u64::from(self.plan.seconds));
        let mut tally = Tally::new(self.plan.seconds);
        let mut session = Some(session);
        let mut intended = begin;
        loop {
            if let Some(mean) = self.gap_seconds {
                intended += exponential(&mut self.stream, mean);
                sleep_until(intended.min(end)).await;
            } else {
                intended = clock.elapsed();
            }
            // Of a fixed rate, what was intended within the time counts even if it comes late.
            if intended >= end || clock.elapsed() >= end + Duration::from_secs(5) {
                return tally;
            }
            let kind = self.plan.mix.draw(&mut self.stream);
            let result = self.perform(&mut session, kind).await;
            let now = clock.elapsed();
            let failed = result.is_err();
            tally.record(kind, now - intended, now.saturating_sub(begin), result);
            self.think(failed, end).await;
        }
    }

    async fn perform(
        &mut self,
        session: &mut Option<Session>,
        kind: Transaction,
    ) -> Result<(), String> {
        if session.is_none() {
            let opened = Session::open(&self.uri).await.map_err(|error| format!("{error:#}"))?;
            *session = Some(opened);
        }
        let Some(open) = session else { return Err("no connection".to_owned()) };
        let limit = Duration::from_secs(TRANSACTION_SECONDS_MAX);
        let done = match tokio::time::timeout(limit, open.perform(kind, &mut self.stream)).await {
            Ok(done) => done.map_err(|error| reason(&error)),
            Err(_) => Err(format!("no answer within {TRANSACTION_SECONDS_MAX} s")),
        };
        if done.is_err() && (open.is_closed() || done.as_ref().is_err_and(|e| e.starts_with("no ")))
        {
            *session = None;
        }
        done
    }

    async fn think(&mut self, failed: bool, end: Duration) {
        let (low, high) = self.plan.think_ms;
        let mut pause = Duration::from_millis(self.stream.between(low, high.max(low)));
        if failed {
            // A database that is away is not asked in a tight loop.
            pause = pause.max(Duration::from_millis(100));
        }
        if !pause.is_zero() {
            sleep_until((SystemClock.elapsed() + pause).min(end)).await;
        }
    }
}

async fn sleep_until(moment: Duration) {
    let left = moment.saturating_sub(SystemClock.elapsed());
    if !left.is_zero() {
        tokio::time::sleep(left).await;
    }
}

fn exponential(stream: &mut Stream, mean_seconds: f64) -> Duration {
    Duration::from_secs_f64(-(1.0 - stream.share()).ln() * mean_seconds)
}

impl Tally {
    fn new(seconds: u32) -> Self {
        Tally {
            histograms: BTreeMap::new(),
            errors: BTreeMap::new(),
            error_texts: BTreeMap::new(),
            per_second: vec![0; seconds as usize],
        }
    }

    fn record(
        &mut self,
        kind: Transaction,
        latency: Duration,
        since_begin: Duration,
        result: Result<(), String>,
    ) {
        match result {
            Ok(()) => {
                let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
                self.histograms.entry(kind).or_insert_with(histogram).saturating_record(micros);
                if let Some(second) = self.per_second.get_mut(since_begin.as_secs() as usize) {
                    *second += 1;
                }
            }
            Err(text) => {
                *self.errors.entry(kind).or_default() += 1;
                self.add_error(text, 1);
            }
        }
    }

    fn add_error(&mut self, text: String, times: u64) {
        if self.error_texts.len() < ERROR_KINDS_MAX || self.error_texts.contains_key(&text) {
            *self.error_texts.entry(text).or_default() += times;
        }
    }

    fn add(&mut self, other: Tally) {
        for (kind, seen) in other.histograms {
            let own = self.histograms.entry(kind).or_insert_with(histogram);
            own.add(seen).expect("all histograms have the same range");
        }
        for (kind, errors) in other.errors {
            *self.errors.entry(kind).or_default() += errors;
        }
        for (text, times) in other.error_texts {
            self.add_error(text, times);
        }
        for (own, seen) in self.per_second.iter_mut().zip(other.per_second) {
            *own += seen;
        }
    }

    fn felt(self, seconds: u32) -> Felt {
        let mut all = histogram();
        let mut by_kind = BTreeMap::new();
        let errors = self.errors.values().sum();
        let empty = histogram();
        for kind in Transaction::ALL {
            let failed = self.errors.get(&kind).copied().unwrap_or(0);
            let seen = self.histograms.get(&kind);
            if seen.is_some() || failed > 0 {
                let seen = seen.unwrap_or(&empty);
                all.add(seen).expect("all histograms have the same range");
                by_kind.insert(kind.name(), Latency::of(seen, failed));
            }
        }
        let transactions: u64 = self.per_second.iter().sum();
        let tps = transactions as f64 / f64::from(seconds.max(1));
        Felt {
            transactions,
            errors,
            error_texts: self.error_texts,
            tps,
            tpm: tps * 60.0,
            per_second_min: self.per_second.iter().copied().min().unwrap_or(0),
            per_second: self.per_second,
            latency: Latency::of(&all, errors),
            by_kind,
        }
    }
}

/// Microseconds, three digits, up to ten minutes.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(600_000_000, 3).expect("the bounds are right")
}

impl Latency {
    fn of(seen: &Histogram<u64>, errors: u64) -> Self {
        let at = |share| seen.value_at_quantile(share) as f64 / 1_000.0;
        Latency {
            count: seen.len(),
            errors,
            mean_ms: seen.mean() / 1_000.0,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: seen.max() as f64 / 1_000.0,
        }
    }
}

#[cfg(test)]
mod tests;
