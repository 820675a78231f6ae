//! The settings of each purpose a server is started for.

use super::{Settings, VdbOptions};
use crate::control::Control;

const MIB: u64 = 1 << 20;

/// Settings of every copy, whatever its purpose: no ties to the source, no needless writes.
const COMMON: &[(&str, &str)] = &[
    ("archive_mode", "off"),
    ("primary_conninfo", ""),
    ("primary_slot_name", ""),
    ("synchronous_standby_names", ""),
    ("huge_pages", "off"),
    ("wal_init_zero", "off"),
    ("wal_recycle", "off"),
    ("log_checkpoints", "off"),
];

/// Each write goes to the engine immediately, so let the background writer do it: a backend that needs a buffer then
/// finds a clean one.
const CLEAN_BUFFERS: &[(&str, &str)] = &[
    ("bgwriter_delay", "10ms"),
    ("bgwriter_lru_maxpages", "1000"),
    ("bgwriter_lru_multiplier", "4"),
];

fn common() -> Settings {
    COMMON.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn set(settings: &mut Settings, values: &[(&str, &str)]) {
    for (name, value) in values {
        settings.insert((*name).to_owned(), (*value).to_owned());
    }
}

/// Replay refuses smaller limits than the source had: at least what the control file says, more if
/// the source's settings ask for more.
fn set_minimums(settings: &mut Settings, control: &Control, inherited: &Settings) {
    for (name, least) in &control.minimum_settings {
        let asked = inherited.get(*name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        settings.insert((*name).to_owned(), asked.max(*least).to_string());
    }
}

/// The staging standby: replays all the time, with this many bytes of buffers; nobody sees it. Replay touches pages all
/// over the database, and each page without a buffer costs a write to the engine and a read.
pub(crate) fn staging(control: &Control, inherited: &Settings, buffers: u64) -> Settings {
    let mut settings = common();
    set_minimums(&mut settings, control, inherited);
    set(
        &mut settings,
        &[
            ("hot_standby", "on"),
            ("hot_standby_feedback", "off"),
            ("restore_command", ""),
            ("recovery_target_timeline", "latest"),
            ("wal_retrieve_retry_interval", "100ms"),
            // The engine's queries never delay replay for long.
            ("max_standby_archive_delay", "1s"),
            ("max_standby_streaming_delay", "1s"),
            ("max_logical_replication_workers", "0"),
            ("shared_buffers", &format!("{}MB", buffers / MIB)),
            // It writes no log.
            ("wal_buffers", "64kB"),
            ("max_wal_size", "1GB"),
            ("full_page_writes", "off"),
            ("autovacuum", "off"),
            // Each time replay reaches the end of what has arrived, it says so at level LOG.
            ("log_min_messages", "fatal"),
        ],
    );
    set(&mut settings, CLEAN_BUFFERS);
    settings
}

/// A private, temporary server that recovers, is settled and stopped. It does not sync: see
/// [`crate::recovery::run`].
pub(crate) fn preparing(control: &Control, inherited: &Settings) -> Settings {
    let mut settings = common();
    set_minimums(&mut settings, control, inherited);
    set(
        &mut settings,
        &[
            ("hot_standby", "off"),
            // Recovery insists on a command; this one says that the archive has nothing.
            ("restore_command", "exit 1"),
            ("wal_retrieve_retry_interval", "100ms"),
            ("recovery_target_action", "promote"),
            ("max_logical_replication_workers", "0"),
            ("shared_buffers", "256MB"),
            ("maintenance_io_concurrency", "256"),
            ("max_wal_size", "16GB"),
            ("checkpoint_timeout", "1h"),
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("full_page_writes", "off"),
            ("bgwriter_lru_maxpages", "0"),
            ("autovacuum", "off"),
            // Its log says when it is ready.
            ("log_min_messages", "warning"),
        ],
    );
    settings
}

/// A private server that recovers and is stopped, and that must do nothing else ([`crate::rounds`]): exactly the
/// settings that its control file holds, no libraries, whose workers would read tables, and no vacuum, which starts in
/// an old cluster even where it is off. It does not sync.
pub(crate) fn round(held: Settings, segment_bytes: u64) -> Settings {
    let mut settings = common();
    settings.extend(held);
    // Its last checkpoint may be in the next file of the log, and what it wrote is looked at from the end of recovery.
    settings.insert("wal_keep_size".to_owned(), format!("{}MB", segment_bytes / MIB));
    set(
        &mut settings,
        &[
            ("hot_standby", "off"),
            ("restore_command", ""),
            ("shared_preload_libraries", ""),
            ("max_logical_replication_workers", "0"),
            ("shared_buffers", "256MB"),
            ("maintenance_io_concurrency", "256"),
            ("max_wal_size", "16GB"),
            ("checkpoint_timeout", "1h"),
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("full_page_writes", "off"),
            ("bgwriter_lru_maxpages", "0"),
            ("autovacuum", "off"),
            ("autovacuum_freeze_max_age", "2000000000"),
            ("autovacuum_multixact_freeze_max_age", "2000000000"),
            ("restart_after_crash", "off"),
            // Its log says when it has recovered.
            ("log_min_messages", "warning"),
        ],
    );
    settings
}

/// A VDB. The store is page-atomic, so full page images are not needed; the engine's cache does the
/// caching, so the server's own is small.
pub(crate) fn vdb(control: &Control, inherited: &Settings, options: &VdbOptions) -> Settings {
    let mut settings = common();
    set_minimums(&mut settings, control, inherited);
    let memory = options.memory_bytes.unwrap_or(512 * MIB);
    let buffers = (memory / 8 / MIB).clamp(16, 2048);
    let maintenance = (memory / 8 / MIB).clamp(16, 256);
    set(
        &mut settings,
        &[
            ("full_page_writes", "off"),
            ("restore_command", ""),
            ("shared_buffers", &format!("{buffers}MB")),
            // The server touches all of it when it starts: a 128th of the buffers instead of its default, a
            // 32nd.
            ("wal_buffers", &format!("{}kB", buffers * 8)),
            // None of the source's subscriptions is left to serve: one process less.
            ("max_logical_replication_workers", "0"),
            ("maintenance_work_mem", &format!("{maintenance}MB")),
            ("max_wal_size", "1GB"),
            ("min_wal_size", "80MB"),
        ],
    );
    set(&mut settings, CLEAN_BUFFERS);
    for (name, value) in &options.settings {
        settings.insert(name.to_lowercase(), value.clone());
    }
    settings
}
