//! Whether a source can be linked, and which statements make it so.

use offshoot_os::process::run;
use offshoot_types::{ErrorKind, Failure};
use std::time::Duration;

use super::facts::{Values, read_facts};
use super::refusal::{no_replication, of_tool, refused};
use super::{Session, Source, SourceAddress, SourceFacts, TlsMode};
use crate::installation::{Installation, MAJOR_MAX, MAJOR_MIN, Tools, choose_installation};

/// WAL senders that a link needs at the same time: the receiver and the base backup.
const SENDERS_NEEDED: i64 = 2;

/// Slots that a link needs.
const SLOTS_NEEDED: i64 = 1;

/// How long the trial of a replication connection may take.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a check of a source found.
#[derive(Debug, Clone, Default)]
pub struct Precheck {
    /// What the source is; present if it let us in and has a supported version.
    pub facts: Option<SourceFacts>,
    /// Everything that prevents the link; each hint is the statement or command that fixes it.
    pub problems: Vec<Failure>,
    /// What may become a problem later; each hint says what to do.
    pub warnings: Vec<Failure>,
}

impl Precheck {
    /// The facts when nothing prevents the link.
    ///
    /// # Errors
    /// One failure that names all problems and all fixes.
    pub fn into_result(mut self) -> Result<SourceFacts, Failure> {
        let Some(first) = self.problems.first() else {
            return self.facts.take().ok_or_else(|| Failure::internal("a source without facts"));
        };
        if self.problems.len() == 1 {
            return Err(first.clone());
        }
        let numbered = |text: fn(&Failure) -> &str| {
            let lines = self.problems.iter().enumerate().filter(|(_, one)| !text(one).is_empty());
            lines
                .map(|(at, one)| format!("({}) {}", at + 1, text(one)))
                .collect::<Vec<_>>()
                .join("  ")
        };
        let messages = numbered(|problem| &problem.message);
        Err(Failure::new(
            first.code,
            format!("{} things prevent the link: {messages}", self.problems.len()),
            numbered(|problem| &problem.hint),
        ))
    }
}

/// Checks a source and collects all problems. Takes at most a few seconds, changes nothing.
pub fn precheck(source: &Source, installations: &[Installation]) -> Precheck {
    let mut found = Precheck::default();
    found.warnings.extend(unproved(&source.address));
    match source.connect() {
        Ok(session) => {
            if let Err(failure) = look(source, &session, installations, &mut found) {
                found.problems.push(failure);
            }
        }
        Err(failure) => found.problems.push(failure),
    }
    found
}

/// What to say if nothing proves that the server is the one that the URI names.
pub(super) fn unproved(address: &SourceAddress) -> Option<Failure> {
    if address.is_local() || address.tls == TlsMode::VerifyFull {
        return None;
    }
    let mode = address.tls.as_str();
    Some(refused(
        format!(
            "sslmode={mode} does not prove that {} is the source: another host may pretend to be it",
            address.host
        ),
        "add sslmode=verify-full&sslrootcert=FILE to the URI, with the certificates that vouch for the source",
    ))
}

fn look(
    source: &Source,
    session: &Session,
    installations: &[Installation],
    found: &mut Precheck,
) -> Result<(), Failure> {
    let mut values =
        Values::new(session.row(
            "SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_version')",
        )?);
    let major = values.parse::<u32>("version")? / 10_000;
    let version = values.text("version")?;
    if !(MAJOR_MIN..=MAJOR_MAX).contains(&major) {
        found.problems.push(refused(
            format!("{}: PostgreSQL {version} is not supported", source.address),
            format!("link a server of a version from {MAJOR_MIN} to {MAJOR_MAX}"),
        ));
        return Ok(());
    }
    let installation = match choose_installation(installations, major) {
        Ok(installation) => Some(installation),
        Err(failure) => {
            found.problems.push(failure);
            None
        }
    };
    check_settings(session, found)?;
    let may_replicate = check_role(source, session, found)?;
    // Any version's client can try a connection.
    if may_replicate
        && let Some(installation) = installation.or(installations.first())
        && let Err(failure) = try_replication(source, installation)
    {
        found.problems.push(failure);
    }
    found.facts = Some(read_facts(session)?);
    Ok(())
}

const SETTINGS: &str = "
    SELECT pg_catalog.current_setting('wal_level'),
           pg_catalog.current_setting('max_wal_senders'),
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication),
           pg_catalog.current_setting('max_replication_slots'),
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots),
           pg_catalog.current_setting('block_size'),
           pg_catalog.current_setting('wal_block_size'),
           pg_catalog.current_setting('max_slot_wal_keep_size'),
           pg_catalog.pg_is_in_recovery()";

fn check_settings(session: &Session, found: &mut Precheck) -> Result<(), Failure> {
    let mut values = Values::new(session.row(SETTINGS)?);
    let problems = &mut found.problems;
    let wal_level = values.text("wal_level")?;
    let senders = values.parse::<i64>("max_wal_senders")?;
    let senders_used = values.parse::<i64>("WAL senders")?;
    let slots = values.parse::<i64>("max_replication_slots")?;
    let slots_used = values.parse::<i64>("slots")?;
    let (block, wal_block) = (values.text("block_size")?, values.text("wal_block_size")?);
    let keep = values.text("max_slot_wal_keep_size")?;
    let in_recovery = values.text("recovery state")? == "t";
    if wal_level == "minimal" {
        problems.push(refused(
            "wal_level is minimal, so the log does not suffice for a copy",
            "ALTER SYSTEM SET wal_level = replica; then restart the source",
        ));
    }
    if senders - senders_used < SENDERS_NEEDED {
        problems.push(refused(
            format!(
                "max_wal_senders is {senders} and {senders_used} are in use; \
                 {SENDERS_NEEDED} more are needed"
            ),
            format!(
                "ALTER SYSTEM SET max_wal_senders = {}; then restart the source",
                (senders_used + SENDERS_NEEDED).max(10)
            ),
        ));
    }
    if slots - slots_used < SLOTS_NEEDED {
        problems.push(refused(
            format!(
                "max_replication_slots is {slots} and {slots_used} are in use; \
                 {SLOTS_NEEDED} more is needed"
            ),
            format!(
                "ALTER SYSTEM SET max_replication_slots = {}; then restart the source",
                (slots_used + SLOTS_NEEDED).max(10)
            ),
        ));
    }
    if block != "8192" || wal_block != "8192" {
        problems.push(refused(
            format!("the server was built with pages of {block} bytes (log: {wal_block})"),
            "only servers with pages of 8192 bytes can be linked",
        ));
    }
    if keep == "-1" {
        found.warnings.push(refused(
            "max_slot_wal_keep_size is unlimited: while the engine does not receive, the source \
             keeps all its log and may run out of disk",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '50GB'; SELECT pg_reload_conf();",
        ));
    }
    if in_recovery {
        found.warnings.push(refused(
            "the source is a standby: the newest moment that opens is what it has replayed",
            "link the primary to follow it without that delay",
        ));
    }
    Ok(())
}

/// Checks the role; whether it may replicate.
fn check_role(source: &Source, session: &Session, found: &mut Precheck) -> Result<bool, Failure> {
    let mut values = Values::new(session.row(
        "SELECT rolreplication OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user",
    )?);
    let may_replicate = values.text("replication privilege")? == "t";
    if !may_replicate {
        found.problems.push(no_replication(&source.address));
    }
    Ok(may_replicate)
}

/// Opens a replication connection, as only that shows whether `pg_hba.conf` admits it.
fn try_replication(source: &Source, installation: &Installation) -> Result<(), Failure> {
    let tools = Tools::new(installation.clone())?;
    let conninfo = source.address.conninfo("offshoot_check");
    let spec = source
        .tool(&tools, "psql", &[])
        .args(["-X", "-A", "-t", "-q", "-w", "-d"])
        .arg(format!("{conninfo} replication=true"))
        .args(["-c", "IDENTIFY_SYSTEM"]);
    let output = run(&spec, TRIAL_TIMEOUT).map_err(|error| {
        Failure::new(
            ErrorKind::SourceUnreachable,
            format!("cannot try a replication connection to {}: {error}", source.address),
            "check the network between this host and the source",
        )
    })?;
    if output.success() { Ok(()) } else { Err(of_tool(&output.stderr_text(), &source.address)) }
}
