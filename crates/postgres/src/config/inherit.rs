//! Which of a source's settings its copies keep, and which settings a VDB's user may not set.

use std::path::{Path, PathBuf};

use super::{Adopted, Settings, parse};

/// Settings tied to the source's host, its size, its files, its network or its replication. A name
/// ending in `*` matches all names that begin like it.
#[rustfmt::skip]
const NOT_INHERITED: &[&str] = &[
    // Files, addresses, access.
    "data_directory", "config_file", "hba_file", "ident_file", "external_pid_file",
    "listen_addresses", "port", "unix_socket_*", "bonjour*", "ssl*", "krb_*", "gss_*",
    "db_user_namespace", "authentication_timeout", "oauth_*", "password_encryption",
    "reserved_connections", "superuser_reserved_connections", "stats_temp_directory",
    "dynamic_library_path", "extension_control_path", "extension_destdir", "jit_provider",
    "jit_debugging_support", "jit_profiling_support",
    // Memory and files of the source's machine.
    "shared_buffers", "huge_page*", "shared_memory_type", "dynamic_shared_memory_type",
    "min_dynamic_shared_memory", "maintenance_work_mem", "autovacuum_work_mem", "wal_buffers",
    "max_stack_depth", "max_files_per_process", "io_*", "debug_io_direct",
    "commit_timestamp_buffers", "multixact_*_buffers", "notify_buffers", "serializable_buffers",
    "subtransaction_buffers", "transaction_buffers", "multixact_offset_buffers",
    "multixact_member_buffers", "vacuum_buffer_usage_limit", "effective_io_concurrency",
    "maintenance_io_concurrency",
    // Durability, checkpoints, the log.
    "fsync", "full_page_writes", "wal_init_zero", "wal_recycle", "wal_sync_method", "min_wal_size",
    "max_wal_size", "checkpoint_*", "data_sync_retry", "wal_log_hints", "wal_decode_buffer_size",
    "wal_writer_*", "wal_skip_threshold", "commit_delay", "commit_siblings", "bgwriter_*",
    "backend_flush_after", "data_checksums", "recovery_init_sync_method",
    // Archiving, replication, recovery: a copy never speaks to production.
    "archive_*", "restore_command", "recovery_*", "primary_*", "promote_trigger_file",
    "hot_standby*", "wal_receiver_*", "wal_retrieve_retry_interval", "wal_keep_*",
    "max_slot_wal_keep_size", "idle_replication_slot_timeout", "synchronous_standby_names",
    "synchronized_standby_slots", "standby_slot_names", "sync_replication_slots", "max_standby_*",
    "vacuum_defer_cleanup_age", "wal_sender_timeout", "trigger_file", "standby_mode",
    "max_logical_replication_workers", "max_sync_workers_per_subscription",
    "max_parallel_apply_workers_per_subscription", "max_active_replication_origins",
    "max_replication_slots", "summarize_wal", "wal_summary_keep_time", "wal_consistency_checking",
    // Logging, process title, locale of messages.
    "log_*", "logging_collector", "syslog_*", "event_source", "cluster_name",
    "update_process_title", "lc_messages", "debug_*", "application_name",
    // Dangerous switches.
    "restart_after_crash", "exit_on_error", "ignore_*", "zero_damaged_pages", "pre_auth_delay",
    "post_auth_delay", "allow_system_table_mods", "allow_in_place_tablespaces",
    "remove_temp_files_after_crash", "send_abort_for_*", "trace_*", "backtrace_functions",
    "transaction_*", "in_hot_standby", "is_superuser",
];

/// Libraries whose workers act on their own or talk to other hosts. A VDB's user may ask for them.
#[rustfmt::skip]
const ACTING_LIBRARIES: &[&str] = &[
    "pg_cron", "pg_partman_bgw", "pg_net", "pglogical", "bdr", "repmgr", "citus", "spock",
    "pgautofailover", "pg_failover_slots", "pg_task", "powa", "pg_squeeze",
];

const LIBRARY_LISTS: &[&str] =
    &["shared_preload_libraries", "session_preload_libraries", "local_preload_libraries"];

/// Chooses what to keep of a source's settings.
pub(super) fn choose(found: Settings, bin_dir: &Path) -> Adopted {
    let mut adopted = Adopted::default();
    for (name, value) in found {
        if LIBRARY_LISTS.contains(&name.as_str()) {
            let kept = keep_libraries(&name, &value, bin_dir, &mut adopted.dropped);
            if !kept.is_empty() {
                adopted.inherited.insert(name, kept);
            }
        } else if !parse::is_name(&name) || matches_any(&name, NOT_INHERITED) {
            continue;
        } else if name.split_once('.').is_some_and(|(owner, _)| acts_by_itself(owner)) {
            adopted.dropped.push((name, "its extension acts on its own".to_owned()));
        } else if let Some(reason) = missing_locale(&name, &value) {
            adopted.dropped.push((name, reason));
        } else {
            adopted.inherited.insert(name, value);
        }
    }
    // TimescaleDB must be loaded for its tables to be readable, but its jobs must not run.
    if adopted.inherited.get("shared_preload_libraries").is_some_and(|v| v.contains("timescaledb"))
    {
        adopted.inherited.insert("timescaledb.max_background_workers".into(), "0".into());
    }
    adopted
}

fn keep_libraries(
    name: &str,
    value: &str,
    bin_dir: &Path,
    dropped: &mut Vec<(String, String)>,
) -> String {
    let mut kept = Vec::new();
    for library in libraries(value) {
        if acts_by_itself(&library) {
            dropped.push((format!("{name}: {library}"), "it acts on its own".to_owned()));
        } else if !library_exists(bin_dir, &library) {
            dropped.push((format!("{name}: {library}"), "it is not installed here".to_owned()));
        } else {
            kept.push(library);
        }
    }
    kept.join(", ")
}

/// The names in a list of libraries, without quotes, directories and `.so`.
pub(super) fn libraries(value: &str) -> Vec<String> {
    let names = value.split(',').map(|name| name.trim().trim_matches('"'));
    names
        .filter(|name| !name.is_empty())
        .map(|name| name.trim_end_matches(".so").to_owned())
        .collect()
}

fn acts_by_itself(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or(library);
    ACTING_LIBRARIES.contains(&name) || matches!(name, "cron")
}

/// Whether the server programs in `bin_dir` find a library.
pub(super) fn library_exists(bin_dir: &Path, library: &str) -> bool {
    let file = format!("{}.so", library.trim_start_matches("$libdir/"));
    if library.starts_with('/') {
        return Path::new(&format!("{library}.so")).is_file();
    }
    library_dirs(bin_dir)
        .iter()
        .any(|dir| dir.join(&file).is_file() || dir.join("plugins").join(&file).is_file())
}

/// Directories that may be the server's library directory: those near its programs that hold a
/// library every server has.
fn library_dirs(bin_dir: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(bin_dir).unwrap_or_else(|_| bin_dir.to_owned());
    let Some(prefix) = real.parent() else { return Vec::new() };
    ["lib", "lib/postgresql", "lib64", "lib64/postgresql", "lib64/pgsql"]
        .iter()
        .map(|dir| prefix.join(dir))
        .filter(|dir| dir.join("plpgsql.so").is_file())
        .collect()
}

/// Why a locale setting cannot be kept; locales come from the operating system.
fn missing_locale(name: &str, value: &str) -> Option<String> {
    if !matches!(name, "lc_monetary" | "lc_numeric" | "lc_time") || value.is_empty() {
        return None;
    }
    let locale = std::ffi::CString::new(value).ok()?;
    // SAFETY: a valid C string; the locale is freed when it was made.
    let known = unsafe {
        let made = libc::newlocale(libc::LC_ALL_MASK, locale.as_ptr(), std::ptr::null_mut());
        if !made.is_null() {
            libc::freelocale(made);
        }
        !made.is_null()
    };
    (!known).then(|| format!("the locale {value} is not installed here"))
}

/// Why a VDB's user cannot set a setting; `None` if they can. The text is a hint.
pub(super) fn reserved(name: &str) -> Option<&'static str> {
    const BY_OPTION: &[&str] = &["port", "listen_addresses", "unix_socket_*", "bonjour*"];
    const FILES: &[&str] = &[
        "data_directory",
        "config_file",
        "hba_file",
        "ident_file",
        "external_pid_file",
        "ssl*",
        "krb_*",
        "logging_collector",
        "log_destination",
        "cluster_name",
        "update_process_title",
        "syslog_*",
        "log_directory",
        "log_filename",
        "lc_messages",
    ];
    const SYNC: &[&str] = &[
        "archive_*",
        "restore_command",
        "recovery_*",
        "primary_*",
        "hot_standby*",
        "promote_trigger_file",
        "synchronous_standby_names",
        "sync_replication_slots",
    ];
    let name = name.to_lowercase();
    if matches_any(&name, BY_OPTION) {
        Some("choose the port with --port; VDBs listen on the loopback address")
    } else if matches_any(&name, FILES) {
        Some("leave it out: the engine chooses files, logging and access of a VDB")
    } else if matches_any(&name, SYNC) {
        Some("leave it out: a VDB neither archives nor replicates; use snapshots and bookmarks")
    } else {
        None
    }
}

fn matches_any(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.split_once('*') {
        Some((head, tail)) => name.starts_with(head) && name.ends_with(tail),
        None => name == *pattern,
    })
}
