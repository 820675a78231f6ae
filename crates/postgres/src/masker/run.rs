//! One masking, from the first table to the last byte.

use super::facts::{Oid, Relation};
use super::flow::Flow;
use super::plan::{Job, Plan, Reading};
use super::subset::{self, Subset};
use super::watch::Watch;
use super::{database_of, remains, rewrite, several, verify};
use crate::base_backup::TABLESPACES_DIR;
use crate::wire::Refusal;
use crate::wire::{Door, Wire};
use offshoot_connector::{DataDir, MaskedTable, MaskingTick, TableState};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Failure;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::thread::Builder;
use std::time::Duration;

/// How often it is told how far masking has come.
const TICK: Duration = Duration::from_millis(100);
/// How often it is looked whether masking has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How many tables are masked at the same time at most.
const TABLES_MAX: usize = 4;
/// Where masked rows are at first.
const SCHEMA: &str = "offshoot_mask";

/// What expressions in rules the databases do not understand.
pub(super) fn misunderstood(door: &Door, plan: &Plan) -> Result<Vec<String>, Failure> {
    let jobs = plan.jobs();
    if jobs.is_empty() && plan.keeps.is_empty() {
        return Ok(Vec::new());
    }
    let mut wire = Wire::connect(door, &plan.facts.database)?;
    let mut problems = subset::misunderstood(&mut wire, plan);
    for job in jobs {
        for source in &job.sources {
            let Some(reading) = plan.reading(*source, job.through.unwrap_or(*source)) else {
                continue;
            };
            if let Err(refusal) = wire.understands(&reading.query) {
                let name = plan.facts.relations.get(source).map(Relation::name);
                problems.push(format!("{}: {}", name.unwrap_or_default(), refusal.said()));
            }
        }
    }
    Ok(problems)
}

/// One masking.
pub(super) struct Run<'a> {
    pub(super) door: &'a Door,
    /// Where rows are read: in the copy itself, or in another one.
    pub(super) source: &'a Door,
    files: &'a dyn DataDir,
    pub(super) plans: Vec<Plan>,
    /// The first of the named tables of each plan among all.
    pub(super) first: Vec<usize>,
    pub(super) watch: Watch,
    /// Tables at the same time, and threads that mask the rows of each.
    width: (usize, usize),
}

impl<'a> Run<'a> {
    pub(super) fn new(
        (door, source): (&'a Door, &'a Door),
        files: &'a dyn DataDir,
        plans: Vec<Plan>,
    ) -> Run<'a> {
        let several = several(&plans);
        let (mut tables, mut first) = (Vec::new(), Vec::new());
        for plan in &plans {
            first.push(tables.len());
            let place = database_of(plan, several);
            let emptied = plan.empties();
            for oid in &plan.named {
                let rows = match emptied.contains(oid) {
                    true => 0,
                    false => plan.facts.tree(*oid).iter().map(|one| one.leaf_rows()).sum(),
                };
                let name = plan.facts.relations.get(oid).map(Relation::name).unwrap_or_default();
                tables.push(MaskedTable {
                    name: format!("{place}{name}"),
                    rows: 0,
                    rows_total: rows,
                    state: TableState::Waiting,
                });
            }
        }
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let tables_side_by_side = processors.clamp(1, TABLES_MAX);
        let workers = (processors / tables_side_by_side).clamp(1, 4);
        let watch = Watch::new(tables);
        Run { door, source, files, plans, first, watch, width: (tables_side_by_side, workers) }
    }

    pub(super) fn values(&self) -> u64 {
        self.watch.values()
    }

    pub(super) fn tables(&self) -> Vec<MaskedTable> {
        self.watch.tables()
    }

    /// Masks on threads of its own, and tells this one's caller how far it is.
    pub(super) fn watched(
        &self,
        work: impl FnOnce() -> Result<(), Failure> + Send,
        tick: &mut MaskingTick<'_>,
    ) -> Result<(), Failure> {
        tick(&self.tables())?;
        std::thread::scope(|scope| {
            let thread = Builder::new().name("masking".to_owned());
            let work = thread
                .spawn_scoped(scope, work)
                .map_err(|error| Failure::internal(format!("no thread to mask with: {error}")))?;
            let (mut refused, mut told) = (None, SystemClock.elapsed());
            while !work.is_finished() {
                SystemClock.sleep(LOOK);
                if SystemClock.elapsed().saturating_sub(told) < TICK {
                    continue;
                }
                told = SystemClock.elapsed();
                if refused.is_none() {
                    refused = tick(&self.tables()).err();
                }
                if refused.is_some() {
                    // Again, for sessions that were opened meanwhile.
                    self.watch.stop(self.door);
                }
            }
            let done = work.join();
            let done = done.unwrap_or_else(|_| Err(Failure::internal("the masking panicked")));
            refused.map_or(done, Err)
        })?;
        tick(&self.tables())
    }

    /// What tells how far it has come whenever it is called, but not too often.
    pub(super) fn ticking(
        &self,
        tick: &mut MaskingTick<'_>,
    ) -> impl FnMut() -> Result<(), Failure> {
        let mut told = SystemClock.elapsed();
        move || {
            if SystemClock.elapsed().saturating_sub(told) < TICK {
                return Ok(());
            }
            told = SystemClock.elapsed();
            tick(&self.tables())
        }
    }

    /// Masks everything.
    pub(super) fn all(&self) -> Result<(), Failure> {
        for (number, plan) in self.plans.iter().enumerate() {
            let database = &plan.facts.database;
            match plan.named.is_empty() {
                true => remains::forget_shared(&mut self.connect(database)?, database)?,
                false => {
                    self.database(plan, self.first.get(number).copied().unwrap_or_default())?
                }
            }
        }
        remains::count_shared(&mut Wire::connect_any(self.source)?, &self.watch)?;
        self.end()
    }

    /// What is done when the rows of all databases are masked.
    pub(super) fn end(&self) -> Result<(), Failure> {
        self.watch.go_on()?;
        let mut wire = Wire::connect_any(self.door)?;
        remains::clean_shared(&mut wire)?;
        for plan in &self.plans {
            self.remove_orphans(&plan.facts.database)?;
        }
        self.remove_unknown_databases(&mut wire)
    }

    pub(super) fn connect(&self, database: &str) -> Result<Wire, Failure> {
        self.watch.go_on()?;
        Wire::connect(self.door, database)
    }

    fn database(&self, plan: &Plan, first: usize) -> Result<(), Failure> {
        let database = &plan.facts.database;
        let failed = |refusal: Refusal| refusal.into_failure(&format!("database {database}"));
        let mut wire = self.connect(database)?;
        let schema = free_schema(&mut wire).map_err(failed)?;
        let quoted = crate::session::quote_identifier(&schema);
        wire.execute(&format!("CREATE SCHEMA {quoted}")).map_err(failed)?;
        // Conditions may read what is emptied.
        let subset = Subset::find(&mut wire, plan, &schema, &self.watch)?;
        self.empty(plan, first, &mut wire)?;
        let mut jobs = plan.jobs();
        jobs.extend(subset.jobs(plan, &jobs));
        Rewriting { run: self, plan, first, schema: &schema, subset: &subset }.all(jobs)?;
        let mut changed = plan.changed();
        changed.extend(subset.relations());
        subset.end(&mut wire, plan, first, &self.watch)?;
        wire.execute(&format!("DROP SCHEMA {quoted}")).map_err(failed)?;
        verify::foreign_keys(&mut wire, plan, &|_, from| vec![verify::rows(from)])?;
        self.watch.go_on()?;
        let views = remains::refresh_views(&mut wire, plan, &changed)?;
        self.watch.go_on()?;
        remains::count(&mut wire, database, &self.watch)?;
        remains::clean(&mut wire, plan, (&changed, &views), &self.watch)?;
        (first..first + plan.named.len()).for_each(|table| self.watch.done(table));
        Ok(())
    }

    fn empty(&self, plan: &Plan, first: usize, wire: &mut Wire) -> Result<(), Failure> {
        let relations = plan.emptied.iter().filter_map(|oid| plan.facts.relations.get(oid));
        let names: Vec<String> = relations.map(Relation::quoted).collect();
        if names.is_empty() {
            return Ok(());
        }
        for (at, oid) in plan.named.iter().enumerate() {
            let Some(relation) = plan.facts.relations.get(oid) else { continue };
            if plan.emptied.contains(oid) {
                let sql = format!("SELECT pg_catalog.count(*) FROM {}", relation.quoted());
                let rows = wire.column(&sql).map_err(|one| one.into_failure(&relation.name()))?;
                let rows = rows.first().and_then(|rows| rows.parse().ok()).unwrap_or_default();
                self.watch.counted(first + at, rows, 0);
            }
        }
        let sql = format!("TRUNCATE {}", names.join(", "));
        wire.execute(&sql).map_err(|refusal| refusal.into_failure("tables to empty"))?;
        for (at, oid) in plan.named.iter().enumerate() {
            if plan.emptied.contains(oid) {
                self.watch.done(first + at);
            }
        }
        Ok(())
    }

    /// Files that no relation of a database has any more.
    fn remove_orphans(&self, database: &str) -> Result<(), Failure> {
        let failed = |refusal: Refusal| refusal.into_failure(&format!("database {database}"));
        let mut wire = self.connect(database)?;
        let known: BTreeSet<String> =
            wire.column(remains::FILES).map_err(failed)?.into_iter().collect();
        let oid = wire
            .column("SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()")
            .map_err(failed)?;
        for directory in self.directories().map_err(unreadable)? {
            let last = directory.rsplit('/').next().map(str::to_owned);
            if last.as_ref() == oid.first() {
                self.orphans(&directory, &known)?;
            }
        }
        // Each database knows what all of them share.
        self.orphans("global", &known)
    }

    fn orphans(&self, directory: &str, known: &BTreeSet<String>) -> Result<(), Failure> {
        let removed = remains::remove_orphans(self.files, directory, known)?;
        self.watch.removed("files that no relation has", removed);
        Ok(())
    }

    /// Directories of databases that are no more, or never were.
    fn remove_unknown_databases(&self, wire: &mut Wire) -> Result<(), Failure> {
        let failed = |refusal: Refusal| refusal.into_failure("the server");
        let known = wire.column("SELECT oid FROM pg_catalog.pg_database").map_err(failed)?;
        for directory in self.directories().map_err(unreadable)? {
            let name = directory.rsplit('/').next().unwrap_or_default();
            let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && !known.iter().any(|oid| oid == name) {
                self.files.remove_all(&directory).map_err(unreadable)?;
            }
        }
        Ok(())
    }

    /// The directories of databases, in all tablespaces.
    fn directories(&self) -> io::Result<Vec<String>> {
        let below = |path: &str| match self.files.list(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names.map(|names| {
                names.into_iter().map(|name| format!("{path}/{name}")).collect::<Vec<_>>()
            }),
        };
        let mut found = below("base")?;
        for tablespace in below(TABLESPACES_DIR)? {
            for version in below(&tablespace)? {
                found.extend(below(&version)?);
            }
        }
        Ok(found)
    }
}

fn unreadable(error: io::Error) -> Failure {
    Failure::internal(format!("the files of the copy cannot be cleaned: {error}"))
}

/// A name for a schema that no other has.
pub(super) fn free_schema(wire: &mut Wire) -> Result<String, Refusal> {
    let taken = wire.column("SELECT nspname FROM pg_catalog.pg_namespace")?;
    let names = (0..).map(|number| match number {
        0 => SCHEMA.to_owned(),
        _ => format!("{SCHEMA}_{number}"),
    });
    let mut free = names.filter(|name| !taken.contains(name));
    Ok(free.next().unwrap_or_default())
}

/// The tables of a database that are written anew.
pub(super) struct Rewriting<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) plan: &'a Plan,
    pub(super) first: usize,
    pub(super) schema: &'a str,
    pub(super) subset: &'a Subset,
}

impl Rewriting<'_> {
    pub(super) fn all(&self, jobs: Vec<Job>) -> Result<(), Failure> {
        let mut left: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        jobs.iter().for_each(|job| *left.entry(job.named).or_default() += 1);
        let (left, waiting) = (Mutex::new(left), Mutex::new(VecDeque::from(jobs)));
        let failure = Mutex::new(None);
        let work = || {
            loop {
                let next = waiting.lock().pop_front();
                let Some(job) = next else { return };
                if let Err(failed) = self.rewrite(&job) {
                    failure.lock().get_or_insert(failed);
                    // The others are of no use any more.
                    return self.run.watch.stop(self.run.door);
                }
                let mut left = left.lock();
                let jobs = left.entry(job.named).or_default();
                *jobs = jobs.saturating_sub(1);
                if let (0, Some(named)) = (*jobs, job.named) {
                    self.run.watch.done(self.first + named);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.run.width.0 {
                // This thread works as well.
                let _ = Builder::new().name("mask-table".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        failure.into_inner().map_or(Ok(()), Err)
    }

    fn rewrite(&self, job: &Job) -> Result<(), Failure> {
        let (facts, watch) = (&self.plan.facts, &self.run.watch);
        let Some(target) = job.through.or(job.sources.first().copied()) else { return Ok(()) };
        let Some(relation) = facts.relations.get(&target) else { return Ok(()) };
        let failed = |refusal: Refusal| refusal.into_failure(&relation.name());
        let mut wire = self.run.connect(&facts.database)?;
        let named = job.named.map(|named| self.first + named);
        named.into_iter().for_each(|named| watch.begin(named));
        let stages = match job.through {
            Some(root) => rewrite::stage_tree_sql(self.schema, facts, root),
            None => rewrite::stage_sql(self.schema, relation),
        };
        wire.execute(&format!("BEGIN; {stages}")).map_err(failed)?;
        let sources = job.sources.iter();
        let readings: Vec<_> = sources.filter_map(|source| self.reading(*source, target)).collect();
        let stage = rewrite::stage_name(self.schema, relation);
        Flow {
            door: self.run.source,
            database: &facts.database,
            table: relation.name(),
            named,
            readings: &readings,
            workers: self.run.width.1,
            watch,
            read: Mutex::default(),
        }
        .run(&mut wire, &rewrite::copy_sql(&stage, relation))?;
        wire.execute("COMMIT").map_err(failed)?;
        for pair in rewrite::pairs(self.schema, facts, &job.sources) {
            rewrite::exchange(&mut wire, facts, &pair).map_err(failed)?;
        }
        wire.execute(&format!("DROP TABLE {stage} CASCADE")).map_err(failed)?;
        job.sources.iter().try_for_each(|source| self.complete(&mut wire, *source))
    }

    /// How the rows of a relation that stay are read.
    fn reading(&self, source: Oid, target: Oid) -> Option<Reading> {
        let mut reading = self.plan.reading(source, target)?;
        if let Some(stays) = self.subset.of(source, &reading.alias) {
            reading.only(&stays);
        }
        Some(reading)
    }

    /// Builds the indexes of a table that has new rows, and checks these.
    fn complete(&self, wire: &mut Wire, table: Oid) -> Result<(), Failure> {
        let Some(relation) = self.plan.facts.relations.get(&table) else { return Ok(()) };
        let masked = self.plan.masked(table);
        let failed = |refusal: Refusal| refusal.into_failure(&relation.name());
        for (index, name, valid) in rewrite::indexes(wire, table).map_err(failed)? {
            self.run.watch.go_on()?;
            let Err(refusal) = wire.execute(&format!("REINDEX INDEX {index}")) else { continue };
            self.run.watch.go_on()?;
            // One that was never completed is of no use, and has old values.
            if !valid && wire.execute(&format!("DROP INDEX {index}")).is_ok() {
                continue;
            }
            return Err(verify::duplicate(wire, relation, &masked, (&index, &name), refusal));
        }
        verify::checks(wire, relation, &masked)
    }
}
