//! Sources as the engine sees them.

use super::host::Postgres;
use super::state::{Remembered, archive};
use super::stream::WalStream;
use crate::base_backup::{BaseBackupRequest, SILENCE, take_base_backup, verify_base_backup};
use crate::config::{self, SOURCE_SETTINGS_SQL};
use crate::receiver::{Receiver, ReceiverSpec};
use crate::slot::{create_slot, drop_slot, slot_name};
use crate::source::{Source as SourceLogin, SourceFacts, precheck};
use offshoot_connector::{
    CheckedSource, Copied, CopyRequest, LogStream, ServerSpec, Source, StreamRequest,
};
use offshoot_types::Failure;
use std::sync::Arc;

/// A PostgreSQL cluster in production.
pub(super) struct PostgresSource {
    host: Postgres,
    source: SourceLogin,
}

impl PostgresSource {
    pub(super) fn new(host: Postgres, source: SourceLogin) -> PostgresSource {
        PostgresSource { host, source }
    }
}

fn facts(checked: &CheckedSource) -> Result<SourceFacts, Failure> {
    serde_json::from_value(checked.facts.clone())
        .map_err(|error| Failure::internal(format!("what was found of the source: {error}")))
}

impl Source for PostgresSource {
    fn check(&self) -> Result<CheckedSource, Failure> {
        let checked = precheck(&self.source, &self.host.installations());
        let warnings = checked.warnings.clone();
        let facts = checked.into_result()?;
        let remembered = Remembered {
            system_identifier: facts.system_identifier,
            timeline: facts.timeline,
            wal_segment_bytes: facts.wal_segment_bytes,
        };
        Ok(CheckedSource {
            state: remembered.store()?,
            identity: facts.system_identifier.to_string(),
            version: facts.version.clone(),
            clock: facts.clock,
            warnings,
            facts: serde_json::to_value(&facts)
                .map_err(|error| Failure::internal(format!("the facts of a source: {error}")))?,
        })
    }

    fn reservation_name(&self, unique: &str) -> Option<String> {
        Some(slot_name(unique))
    }

    fn reserve_log(&self, name: &str) -> Result<(), Failure> {
        create_slot(&self.source.connect()?, name).map(drop)
    }

    fn release_log(&self, name: &str) -> Result<(), Failure> {
        drop_slot(&self.source.connect()?, name)
    }

    fn release_hint(&self, name: &str) -> String {
        format!("SELECT pg_drop_replication_slot('{name}');")
    }

    fn copies_by_path(&self, checked: &CheckedSource) -> bool {
        facts(checked).is_ok_and(|facts| !facts.tablespaces.is_empty())
    }

    fn copy(&self, request: &CopyRequest<'_>) -> Result<Copied, Failure> {
        let facts = facts(request.checked)?;
        let tools = self.host.tools(&facts.version)?;
        let backup = BaseBackupRequest {
            tools: &tools,
            source: &self.source,
            facts: &facts,
            target: &request.target.data_dir,
            files: &*request.target.files,
            silence: SILENCE,
        };
        let progress = |progress: crate::base_backup::BackupProgress| {
            (request.progress)(progress.done_bytes, progress.total_bytes);
        };
        let copied = take_base_backup(&backup, &progress, request.cancelled)?;
        Ok(Copied { start: copied.start.into(), end: copied.end.into(), verified: copied.verified })
    }

    fn verify(&self, target: &ServerSpec, cancelled: &dyn Fn() -> bool) -> Result<(), Failure> {
        verify_base_backup(&self.host.tools_on(target)?, &target.data_dir, cancelled)
    }

    fn adopt_settings(&self, target: &ServerSpec) -> Result<Vec<(String, String)>, Failure> {
        let session = self.source.connect()?;
        let mut settings = config::Settings::new();
        for row in session.rows(SOURCE_SETTINGS_SQL)? {
            if let [Some(name), Some(value)] = row.as_slice() {
                settings.insert(name.clone(), value.clone());
            }
        }
        let tools = self.host.tools(&target.version)?;
        let bin = &tools.installation.bin_dir;
        Ok(config::adopt(&*target.files, bin, tools.user.as_ref(), &settings)?.dropped)
    }

    fn stream(&self, request: StreamRequest) -> Result<Arc<dyn LogStream>, Failure> {
        let spec = ReceiverSpec {
            tools: self.host.tools(&request.version)?,
            source: self.source.clone(),
            system_identifier: Remembered::load(&request.state)?.system_identifier,
            slot: request.reservation.unwrap_or_default(),
            archive: archive(&request.state, request.log)?,
            directory: request.directory,
        };
        Ok(Arc::new(WalStream(Receiver::start(spec, request.clock)?)))
    }
}
