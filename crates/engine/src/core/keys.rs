//! Keys of the servers and secrets of objects.

use offshoot_types::{DsourceId, JobId, VdbId, WebhookId};

/// Of a VDB's server.
pub fn vdb_key(id: VdbId) -> String {
    id.to_string()
}

/// Of a VDB's gateway.
pub fn gateway_key(id: VdbId) -> String {
    format!("{id}-gateway")
}

/// Of a dSource's staging server.
pub fn staging_key(id: DsourceId) -> String {
    format!("staging-{}", id.0)
}

/// The key of a server that a job runs for itself.
pub fn job_key(id: JobId) -> String {
    id.to_string()
}

/// Of the password for a source.
pub fn source_password_key(id: DsourceId) -> String {
    format!("{id}/source-password")
}

/// Of the password that is to replace it.
pub fn new_source_password_key(id: DsourceId) -> String {
    format!("{id}/new-source-password")
}

/// Of what came with a copy of another engine's: for its source, or of the VDB that it is a copy of; empty if that has none. A
/// failover uses it.
pub fn sent_password_key(id: DsourceId) -> String {
    format!("{id}/sent-password")
}

/// Of a VDB's password.
pub fn password_key(id: VdbId) -> String {
    format!("{id}/password")
}

/// Of the password that a VDB is about to get.
pub fn next_password_key(id: VdbId) -> String {
    format!("{id}/next-password")
}

/// Of the key of the certificate that a VDB shows other hosts.
pub fn tls_key(id: VdbId) -> String {
    format!("{id}/tls-key")
}

/// Of the text of a hook, by its revision.
pub fn hook_key(revision: &str) -> String {
    format!("hook/{revision}")
}

/// Of the program that a hook of a VDB runs.
pub fn hook_runtime_key(id: VdbId) -> String {
    format!("{id}-hook")
}

/// Of what a hook of a VDB that runs before hands to the one that runs after.
pub fn handed_key(id: VdbId) -> String {
    format!("{id}/handed")
}

/// Of what a refresh is keeping of a VDB.
pub fn kept_key(id: VdbId) -> String {
    format!("{id}/kept")
}

/// Of what the messages of a webhook are signed with.
pub fn webhook_key(id: WebhookId) -> String {
    format!("{id}/signing-key")
}

/// Of what they were signed with before.
pub fn old_webhook_key(id: WebhookId) -> String {
    format!("{id}/old-signing-key")
}

/// Of a key that values are masked with, by its name.
pub fn masking_key(name: &str) -> String {
    format!("masking/{name}")
}

/// Of the key that reports of masking are signed with.
pub const REPORT_KEY: &str = "mask-report/signing-key";

/// What the engine proves itself with to other engines: certificate and key.
pub const PEER_KEY: &str = "peer/key";

/// The same of before the last rotation, while a peer knows only that.
pub const OLD_PEER_KEY: &str = "peer/old-key";

/// The key of the name of the database that a VDB's URI opens.
pub fn database_key(id: VdbId) -> String {
    format!("{id}/database")
}
