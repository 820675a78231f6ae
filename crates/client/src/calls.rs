//! One method for each endpoint.

use crate::Client;
use offshoot_api::{
    AddPeer, AddUser, AddWebhook, AddedWebhook, ApplyMask, Audit, Bisection, Bookmark,
    BookmarkList, BookmarkVdbGroup, ConsoleCode, CreateBookmark, CreateDiff, CreateGroup,
    CreateReplication, CreateToken, CreatedToken, Diff, DiscoverMask, Discovery, Dsource,
    DsourceList, FailOver, Group, GroupList, InvitePeer, Job, JobAccepted, JobList, Ledger,
    LinkDsource, Mask, MaskKey, MaskKeyList, MaskList, MaskPreview, MaskReportFormat,
    MaskReportKey, Peer, PeerInvitation, PeerKeyRotation, PeerList, Policy, PolicyList, PoolStatus,
    PreviewMask, ProvisionVdb, ProvisionVdbGroup, RefreshVdb, RefreshVdbGroup, ReparentVdb,
    Replication, ReplicationHistory, ReplicationList, RewindVdb, RewindVdbGroup, RotateSecrets,
    ScrubPool, ScrubReport, Secrets, SetDsource, SetPolicy, SetTemplate, SetUser, SetVdb,
    SetWebhook, SignedMaskReport, Snapshot, SnapshotList, StartBisection, Status, TakeSnapshot,
    Template, TemplateList, TimeflowList, Token, TokenList, Topology, User, UserList, Vdb,
    VdbGroup, VdbGroupList, VdbHooks, VdbList, VdbLog, Webhook, WebhookList, WebhookTest, routes,
};
use offshoot_types::{Failure, JobId, SnapshotId, TokenId};
use std::io::{Read, Write};

/// The engine and its pool.
impl Client {
    /// The engine at a glance.
    pub fn status(&self) -> Result<Status, Failure> {
        self.get(routes::STATUS)
    }

    /// A one-time code that signs in to the console.
    pub fn create_console_code(&self) -> Result<ConsoleCode, Failure> {
        self.post(routes::CONSOLE_CODES)
    }

    /// What the pool holds.
    pub fn pool_status(&self) -> Result<PoolStatus, Failure> {
        self.get(routes::POOL)
    }

    /// What all objects hold of the pool, or one object and its snapshots.
    pub fn ledger(&self, object: Option<&str>) -> Result<Ledger, Failure> {
        match object {
            None => self.get(routes::POOL_LEDGER),
            Some(name) => {
                self.get(&format!("{}?object={}", routes::POOL_LEDGER, routes::escape(name)))
            }
        }
    }

    /// The entries of objects, and what deleting all of them together would free.
    pub fn ledger_deletion(&self, objects: &[String]) -> Result<Ledger, Failure> {
        let objects = routes::escape(&objects.join(","));
        self.get(&format!("{}?delete={objects}", routes::POOL_LEDGER))
    }

    /// Reads and verifies everything in the pool.
    pub fn scrub_pool(&self, request: &ScrubPool) -> Result<JobId, Failure> {
        self.post_json(routes::POOL_SCRUB, request).map(accepted)
    }

    /// The last scrub, and the known damage.
    pub fn last_scrub(&self) -> Result<ScrubReport, Failure> {
        self.get(routes::POOL_SCRUB)
    }

    /// Gives space that nothing needs back to the filesystem.
    pub fn reclaim_pool(&self) -> Result<JobId, Failure> {
        self.post(routes::POOL_RECLAIM).map(accepted)
    }
}

/// Secrets.
impl Client {
    /// How the passwords of the pool are sealed.
    pub fn secrets(&self) -> Result<Secrets, Failure> {
        self.get(routes::SECRETS)
    }

    /// Seals them with a new key.
    pub fn rotate_secrets(&self, request: &RotateSecrets) -> Result<JobId, Failure> {
        self.post_json(routes::SECRETS_ROTATE, request).map(accepted)
    }
}

/// Replication.
impl Client {
    /// Writes a dSource as an archive; returns how many bytes that were. `plain`: also where the pool is encrypted.
    pub fn export_archive(
        &self,
        name: &str,
        plain: bool,
        out: &mut dyn Write,
    ) -> Result<u64, Failure> {
        let path = routes::fill(routes::REPLICATION_ARCHIVE, name);
        self.download(&format!("{path}?plain={plain}"), out)
    }

    /// Sends an archive, to be taken in into a namespace; `bytes`: how long it is, if that is known.
    pub fn import_archive(
        &self,
        archive: &mut dyn Read,
        namespace: &str,
        bytes: Option<u64>,
    ) -> Result<JobId, Failure> {
        let namespace = routes::escape(namespace);
        let mut path = format!("{}?as={namespace}", routes::REPLICATION_ARCHIVES);
        if let Some(bytes) = bytes {
            path.push_str(&format!("&bytes={bytes}"));
        }
        self.upload(&path, archive).map(accepted)
    }
}

/// Other engines, and what is sent to them.
impl Client {
    /// Makes a code that lets one engine in.
    pub fn invite_peer(&self, request: &InvitePeer) -> Result<PeerInvitation, Failure> {
        self.post_json(routes::PEER_INVITATIONS, request)
    }

    /// Adds an engine to send to.
    pub fn add_peer(&self, request: &AddPeer) -> Result<Peer, Failure> {
        self.post_json(routes::PEERS, request)
    }

    /// All peers, by name.
    pub fn list_peers(&self) -> Result<PeerList, Failure> {
        self.get(routes::PEERS)
    }

    /// One peer.
    pub fn show_peer(&self, name: &str) -> Result<Peer, Failure> {
        self.get(&routes::fill(routes::PEER, name))
    }

    /// Which engines are known, and which sends to which.
    pub fn topology(&self) -> Result<Topology, Failure> {
        self.get(routes::TOPOLOGY)
    }

    /// Makes another key that this engine proves itself with to peers.
    pub fn rotate_peer_key(&self) -> Result<PeerKeyRotation, Failure> {
        self.post(routes::PEER_KEY_ROTATE)
    }

    /// Forgets a peer.
    pub fn remove_peer(&self, name: &str) -> Result<Peer, Failure> {
        self.delete(&routes::fill(routes::PEER, name))
    }

    /// Makes a profile.
    pub fn create_replication(&self, request: &CreateReplication) -> Result<Replication, Failure> {
        self.post_json(routes::REPLICATIONS, request)
    }

    /// All profiles, by name.
    pub fn list_replications(&self) -> Result<ReplicationList, Failure> {
        self.get(routes::REPLICATIONS)
    }

    /// One profile.
    pub fn show_replication(&self, name: &str) -> Result<Replication, Failure> {
        self.get(&routes::fill(routes::REPLICATION, name))
    }

    /// Its runs that have ended, newest first.
    pub fn replication_history(&self, name: &str) -> Result<ReplicationHistory, Failure> {
        self.get(&routes::fill(routes::REPLICATION_HISTORY, name))
    }

    /// Runs it now.
    pub fn run_replication(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::REPLICATION_RUN, name)).map(accepted)
    }

    /// Makes the copies of another engine's dSources this engine's own.
    pub fn fail_over(&self, request: &FailOver) -> Result<JobId, Failure> {
        self.post_json(routes::FAILOVERS, request).map(accepted)
    }

    /// Lets it run by itself, or not.
    pub fn pause_replication(&self, name: &str, paused: bool) -> Result<Replication, Failure> {
        let route = if paused { routes::REPLICATION_PAUSE } else { routes::REPLICATION_RESUME };
        self.post(&routes::fill(route, name))
    }

    /// Deletes it.
    pub fn delete_replication(&self, name: &str) -> Result<Replication, Failure> {
        self.delete(&routes::fill(routes::REPLICATION, name))
    }
}

/// dSources.
impl Client {
    /// Links a source.
    pub fn link_dsource(&self, request: &LinkDsource) -> Result<JobId, Failure> {
        self.post_json(routes::DSOURCES, request).map(accepted)
    }

    /// All dSources, by name.
    pub fn list_dsources(&self) -> Result<DsourceList, Failure> {
        self.get(routes::DSOURCES)
    }

    /// One dSource.
    pub fn show_dsource(&self, name: &str) -> Result<Dsource, Failure> {
        self.get(&routes::fill(routes::DSOURCE, name))
    }

    /// Changes how the source is reached.
    pub fn set_dsource(&self, name: &str, request: &SetDsource) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::DSOURCE, name), request).map(accepted)
    }

    /// Receives what the source has flushed by now and takes a snapshot.
    pub fn sync_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::DSOURCE_SYNC, name)).map(accepted)
    }

    /// Stops following the source.
    pub fn pause_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::DSOURCE_PAUSE, name)).map(accepted)
    }

    /// Follows the source again.
    pub fn resume_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::DSOURCE_RESUME, name)).map(accepted)
    }

    /// Removes a dSource; VDBs made from it stay.
    pub fn unlink_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.delete(&routes::fill(routes::DSOURCE, name)).map(accepted)
    }
}

/// Snapshots.
impl Client {
    /// Takes a snapshot of a dSource or VDB; the job's `result` is its id.
    pub fn take_snapshot(&self, object: &str) -> Result<JobId, Failure> {
        let request = TakeSnapshot { object: object.to_owned() };
        self.post_json(routes::SNAPSHOTS, &request).map(accepted)
    }

    /// Snapshots of one dSource or VDB, or of all; oldest first.
    pub fn list_snapshots(&self, object: Option<&str>) -> Result<SnapshotList, Failure> {
        match object {
            None => self.get(routes::SNAPSHOTS),
            Some(name) => {
                self.get(&format!("{}?object={}", routes::SNAPSHOTS, routes::escape(name)))
            }
        }
    }

    /// One snapshot.
    pub fn show_snapshot(&self, id: SnapshotId) -> Result<Snapshot, Failure> {
        self.get(&routes::fill(routes::SNAPSHOT, &id.to_string()))
    }

    /// Deletes a snapshot; what was made from it stays.
    pub fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure> {
        self.delete(&routes::fill(routes::SNAPSHOT, &id.to_string())).map(accepted)
    }
}

/// VDBs.
impl Client {
    /// Provisions a VDB.
    pub fn provision_vdb(&self, request: &ProvisionVdb) -> Result<JobId, Failure> {
        self.post_json(routes::VDBS, request).map(accepted)
    }

    /// All VDBs, by name.
    pub fn list_vdbs(&self) -> Result<VdbList, Failure> {
        self.get(routes::VDBS)
    }

    /// One VDB.
    pub fn show_vdb(&self, name: &str) -> Result<Vdb, Failure> {
        self.get(&routes::fill(routes::VDB, name))
    }

    /// Changes a VDB.
    pub fn set_vdb(&self, name: &str, request: &SetVdb) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB, name), request).map(accepted)
    }

    /// The end of the log of a VDB's server, or what was written since the end of an earlier answer.
    pub fn vdb_log(&self, name: &str, since: Option<&str>, bytes: u64) -> Result<VdbLog, Failure> {
        let since = since.map_or(String::new(), |end| format!("&since={}", routes::escape(end)));
        self.get(&format!("{}?bytes={bytes}{since}", routes::fill(routes::VDB_LOG, name)))
    }

    /// The hooks of a VDB, with what they run.
    pub fn vdb_hooks(&self, name: &str) -> Result<VdbHooks, Failure> {
        self.get(&routes::fill(routes::VDB_HOOKS, name))
    }

    /// Starts a stopped VDB.
    pub fn start_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::VDB_START, name)).map(accepted)
    }

    /// Stops a running VDB; its data is kept.
    pub fn stop_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::VDB_STOP, name)).map(accepted)
    }

    /// Gives a running VDB another password.
    pub fn reset_password_of_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::VDB_RESET_PASSWORD, name)).map(accepted)
    }

    /// Deletes a VDB; what was made from it stays.
    pub fn delete_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.delete(&routes::fill(routes::VDB, name)).map(accepted)
    }

    /// Gives a VDB another parent.
    pub fn reparent_vdb(&self, name: &str, request: &ReparentVdb) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB_PARENT, name), request).map(accepted)
    }

    /// Opens another moment of the parent under the same name.
    pub fn refresh_vdb(&self, name: &str, request: &RefreshVdb) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB_REFRESH, name), request).map(accepted)
    }

    /// Goes back to an earlier state of the VDB itself.
    pub fn rewind_vdb(&self, name: &str, request: &RewindVdb) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB_REWIND, name), request).map(accepted)
    }
}

/// Groups.
impl Client {
    /// Makes a group of dSources.
    pub fn create_group(&self, request: &CreateGroup) -> Result<Group, Failure> {
        self.post_json(routes::GROUPS, request)
    }

    /// All groups, by name.
    pub fn list_groups(&self) -> Result<GroupList, Failure> {
        self.get(routes::GROUPS)
    }

    /// One group.
    pub fn show_group(&self, name: &str) -> Result<Group, Failure> {
        self.get(&routes::fill(routes::GROUP, name))
    }

    /// Deletes a group; returns what it was.
    pub fn delete_group(&self, name: &str) -> Result<Group, Failure> {
        self.delete(&routes::fill(routes::GROUP, name))
    }

    /// Makes a VDB of each member of a group.
    pub fn provision_vdb_group(&self, request: &ProvisionVdbGroup) -> Result<JobId, Failure> {
        self.post_json(routes::VDB_GROUPS, request).map(accepted)
    }

    /// All VDB groups, by name.
    pub fn list_vdb_groups(&self) -> Result<VdbGroupList, Failure> {
        self.get(routes::VDB_GROUPS)
    }

    /// One VDB group.
    pub fn show_vdb_group(&self, name: &str) -> Result<VdbGroup, Failure> {
        self.get(&routes::fill(routes::VDB_GROUP, name))
    }

    /// Deletes a VDB group with its VDBs.
    pub fn delete_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.delete(&routes::fill(routes::VDB_GROUP, name)).map(accepted)
    }

    /// Starts all VDBs of a VDB group.
    pub fn start_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::VDB_GROUP_START, name)).map(accepted)
    }

    /// Stops them.
    pub fn stop_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.post(&routes::fill(routes::VDB_GROUP_STOP, name)).map(accepted)
    }

    /// Opens another moment in all of them.
    pub fn refresh_vdb_group(
        &self,
        name: &str,
        request: &RefreshVdbGroup,
    ) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB_GROUP_REFRESH, name), request).map(accepted)
    }

    /// Goes back to the bookmarks of a name.
    pub fn rewind_vdb_group(&self, name: &str, request: &RewindVdbGroup) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB_GROUP_REWIND, name), request).map(accepted)
    }

    /// Sets a bookmark on each of them.
    pub fn bookmark_vdb_group(
        &self,
        name: &str,
        request: &BookmarkVdbGroup,
    ) -> Result<JobId, Failure> {
        self.post_json(&routes::fill(routes::VDB_GROUP_BOOKMARK, name), request).map(accepted)
    }
}

/// Bookmarks and timeflows.
impl Client {
    /// Makes or renews a masked dSource.
    pub fn apply_mask(&self, request: &ApplyMask) -> Result<JobId, Failure> {
        self.post_json(routes::MASKS, request).map(accepted)
    }

    /// Holds rules against a dSource.
    pub fn check_mask(&self, request: &ApplyMask) -> Result<JobId, Failure> {
        self.post_json(routes::MASKS_CHECK, request).map(accepted)
    }

    /// Looks for what should be masked.
    pub fn discover_mask(&self, request: &DiscoverMask) -> Result<JobId, Failure> {
        self.post_json(routes::MASK_DISCOVERIES, request).map(accepted)
    }

    /// What such a job found.
    pub fn show_discovery(&self, job: JobId) -> Result<Discovery, Failure> {
        self.get(&routes::fill(routes::MASK_DISCOVERY, &job.to_string()))
    }

    /// Masks some rows of a table, to be looked at.
    pub fn preview_mask(&self, request: &PreviewMask) -> Result<JobId, Failure> {
        self.post_json(routes::MASK_PREVIEWS, request).map(accepted)
    }

    /// These rows, once.
    pub fn show_preview(&self, job: JobId) -> Result<MaskPreview, Failure> {
        self.get(&routes::fill(routes::MASK_PREVIEW, &job.to_string()))
    }

    /// All masked dSources, by name.
    pub fn list_masks(&self) -> Result<MaskList, Failure> {
        self.get(routes::MASKS)
    }

    /// One masked dSource.
    pub fn show_mask(&self, name: &str) -> Result<Mask, Failure> {
        self.get(&routes::fill(routes::MASK, name))
    }

    /// Compares two states.
    pub fn create_diff(&self, request: &CreateDiff) -> Result<JobId, Failure> {
        self.post_json(routes::DIFFS, request).map(accepted)
    }

    /// What such a job found.
    pub fn show_diff(&self, job: JobId) -> Result<Diff, Failure> {
        self.get(&routes::fill(routes::DIFF, &job.to_string()))
    }

    /// The signed report of one, or of one of its images.
    pub fn mask_report(
        &self,
        name: &str,
        format: MaskReportFormat,
        snapshot: Option<SnapshotId>,
    ) -> Result<SignedMaskReport, Failure> {
        let mut path = routes::fill(routes::MASK_REPORT, name);
        path += match format {
            MaskReportFormat::Json => "?format=json",
            MaskReportFormat::Html => "?format=html",
        };
        if let Some(snapshot) = snapshot {
            path += &format!("&snapshot={snapshot}");
        }
        self.get(&path)
    }

    /// The keys that masked dSources use, by name.
    pub fn list_mask_keys(&self) -> Result<MaskKeyList, Failure> {
        self.get(routes::MASK_KEYS)
    }

    /// Makes another key of a name and forgets the one before.
    pub fn rotate_mask_key(&self, name: &str) -> Result<MaskKey, Failure> {
        self.post(&routes::fill(routes::MASK_KEY_ROTATE, name))
    }

    /// What the signatures of reports are checked with.
    pub fn mask_report_key(&self) -> Result<MaskReportKey, Failure> {
        self.get(routes::MASK_REPORT_KEY)
    }

    /// Looks for the commit at which an answer changed.
    pub fn start_bisection(&self, request: &StartBisection) -> Result<JobId, Failure> {
        self.post_json(routes::BISECTIONS, request).map(accepted)
    }

    /// What such a job found.
    pub fn show_bisection(&self, job: JobId) -> Result<Bisection, Failure> {
        self.get(&routes::fill(routes::BISECTION, &job.to_string()))
    }

    /// Gives a name to a moment of a dSource or VDB.
    pub fn create_bookmark(&self, request: &CreateBookmark) -> Result<JobId, Failure> {
        self.post_json(routes::BOOKMARKS, request).map(accepted)
    }

    /// All bookmarks, by name.
    pub fn list_bookmarks(&self) -> Result<BookmarkList, Failure> {
        self.get(routes::BOOKMARKS)
    }

    /// One bookmark.
    pub fn show_bookmark(&self, name: &str) -> Result<Bookmark, Failure> {
        self.get(&routes::fill(routes::BOOKMARK, name))
    }

    /// Deletes a bookmark; what was made from it stays.
    pub fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure> {
        self.delete(&routes::fill(routes::BOOKMARK, name)).map(accepted)
    }

    /// What can be opened of a dSource or VDB.
    pub fn show_timeflows(&self, name: &str) -> Result<TimeflowList, Failure> {
        self.get(&routes::fill(routes::TIMEFLOWS, name))
    }
}

/// Policies.
impl Client {
    /// The policies of all dSources and VDBs.
    pub fn list_policies(&self) -> Result<PolicyList, Failure> {
        self.get(routes::POLICIES)
    }

    /// The policy of a dSource or VDB.
    pub fn show_policy(&self, name: &str) -> Result<Policy, Failure> {
        self.get(&routes::fill(routes::POLICY, name))
    }

    /// Changes the policy of a dSource or VDB; returns the new one.
    pub fn set_policy(&self, name: &str, request: &SetPolicy) -> Result<Policy, Failure> {
        self.post_json(&routes::fill(routes::POLICY, name), request)
    }
}

/// Jobs.
impl Client {
    /// Jobs, newest first.
    pub fn list_jobs(&self) -> Result<JobList, Failure> {
        self.get(routes::JOBS)
    }

    /// One job.
    pub fn show_job(&self, id: JobId) -> Result<Job, Failure> {
        self.get(&routes::fill(routes::JOB, &id.to_string()))
    }

    /// Asks a job to stop and undo what it did; returns the job as it is then.
    pub fn cancel_job(&self, id: JobId) -> Result<Job, Failure> {
        self.post(&routes::fill(routes::JOB_CANCEL, &id.to_string()))
    }
}

/// Templates.
impl Client {
    /// Keeps a request to provision a VDB, under its name.
    pub fn create_template(&self, request: &ProvisionVdb) -> Result<Template, Failure> {
        self.post_json(routes::TEMPLATES, request)
    }

    /// All templates that one may see, by name.
    pub fn list_templates(&self) -> Result<TemplateList, Failure> {
        self.get(routes::TEMPLATES)
    }

    /// One template.
    pub fn show_template(&self, name: &str) -> Result<Template, Failure> {
        self.get(&routes::fill(routes::TEMPLATE, name))
    }

    /// Changes a template.
    pub fn set_template(&self, name: &str, request: &SetTemplate) -> Result<Template, Failure> {
        self.post_json(&routes::fill(routes::TEMPLATE, name), request)
    }

    /// Removes a template; returns what it was.
    pub fn delete_template(&self, name: &str) -> Result<Template, Failure> {
        self.delete(&routes::fill(routes::TEMPLATE, name))
    }
}

/// Users, their tokens, and the audit.
impl Client {
    /// Adds a user.
    pub fn add_user(&self, request: &AddUser) -> Result<User, Failure> {
        self.post_json(routes::USERS, request)
    }

    /// All users, by name.
    pub fn list_users(&self) -> Result<UserList, Failure> {
        self.get(routes::USERS)
    }

    /// Changes what a user may do.
    pub fn set_user(&self, name: &str, request: &SetUser) -> Result<User, Failure> {
        self.post_json(&routes::fill(routes::USER, name), request)
    }

    /// Removes a user and its tokens; returns what it was.
    pub fn remove_user(&self, name: &str) -> Result<User, Failure> {
        self.delete(&routes::fill(routes::USER, name))
    }

    /// Makes a token for a user; this is the only time that it is shown.
    pub fn create_token(&self, request: &CreateToken) -> Result<CreatedToken, Failure> {
        self.post_json(routes::TOKENS, request)
    }

    /// All tokens, oldest first.
    pub fn list_tokens(&self) -> Result<TokenList, Failure> {
        self.get(routes::TOKENS)
    }

    /// Takes a token back; returns what it was.
    pub fn revoke_token(&self, id: TokenId) -> Result<Token, Failure> {
        self.delete(&routes::fill(routes::TOKEN, &id.to_string()))
    }

    /// Who asked for what, newest first: not before `since` (RFC 3339), of a user, at most `limit` entries.
    pub fn audit(
        &self,
        since: Option<&str>,
        user: Option<&str>,
        limit: u32,
    ) -> Result<Audit, Failure> {
        let mut query = format!("{}?limit={limit}", routes::AUDIT);
        for (name, value) in [("since", since), ("user", user)] {
            if let Some(value) = value {
                query.push_str(&format!("&{name}={}", routes::escape(value)));
            }
        }
        self.get(&query)
    }
}

fn accepted(accepted: JobAccepted) -> JobId {
    accepted.job
}

/// Whom the engine tells of events.
impl Client {
    /// Adds a webhook.
    pub fn add_webhook(&self, request: &AddWebhook) -> Result<AddedWebhook, Failure> {
        self.post_json(routes::WEBHOOKS, request)
    }

    /// All webhooks, by name.
    pub fn list_webhooks(&self) -> Result<WebhookList, Failure> {
        self.get(routes::WEBHOOKS)
    }

    /// One webhook.
    pub fn show_webhook(&self, name: &str) -> Result<Webhook, Failure> {
        self.get(&routes::fill(routes::WEBHOOK, name))
    }

    /// Changes a webhook.
    pub fn set_webhook(&self, name: &str, request: &SetWebhook) -> Result<AddedWebhook, Failure> {
        self.post_json(&routes::fill(routes::WEBHOOK, name), request)
    }

    /// Sends a webhook a message that tells of nothing.
    pub fn test_webhook(&self, name: &str) -> Result<WebhookTest, Failure> {
        self.post(&routes::fill(routes::WEBHOOK_TEST, name))
    }

    /// Removes a webhook.
    pub fn remove_webhook(&self, name: &str) -> Result<Webhook, Failure> {
        self.delete(&routes::fill(routes::WEBHOOK, name))
    }
}
