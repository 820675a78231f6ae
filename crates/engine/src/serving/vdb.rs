//! The server of a VDB: configured, started, given to its users.

use crate::core::keys::{database_key, next_password_key, password_key, vdb_key};
use crate::core::kind::{self, Kind};
use crate::serving::{Serving, direct, exposure, gateways, servers};
use offshoot_connector::{Grant, Granted, Layout, Role, Server, ServerSpec, StopMode, VdbOptions};
use offshoot_domain::{Secret, Vdb};
use offshoot_fs::FileSystem;
use offshoot_types::{DatasetId, ErrorKind, Failure, Share};
use std::path::Path;
use std::time::Duration;

/// How long a VDB may take until it accepts connections; crash recovery of a branch included.
const READY_DEADLINE: Duration = Duration::from_secs(300);

/// Opens a VDB on one of its datasets: mount, configuration, server. On a dataset that is new to it
/// (`fresh`), its role and password are set too.
pub fn open_vdb(
    serving: &Serving,
    vdb: &Vdb,
    dataset: DatasetId,
    fresh: bool,
) -> Result<(), Failure> {
    open_vdb_with(serving, vdb, dataset, fresh, &|_| Ok(()))
}

/// The same; `prepare` has its server before users do.
pub fn open_vdb_with(
    serving: &Serving,
    vdb: &Vdb,
    dataset: DatasetId,
    fresh: bool,
    prepare: &dyn Fn(&dyn Server) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _hurry = offshoot_os::hurry();
    serving.volumes.mount(dataset)?;
    serving.volumes.read_directly(dataset, &direct::group_of(serving, vdb)?);
    serving.volumes.give_into_custody(dataset);
    gateways::prepare(serving, vdb)?;
    let key = vdb_key(vdb.id);
    let kind = Kind::of_vdb(serving, vdb)?;
    let title = format!("vdb {}", vdb.name);
    let spec = servers::spec(serving, &key, title, &kind, dataset, Some(vdb.server_port()))?;
    // Until it is ready.
    let preload = serving.volumes.preload(dataset);
    let spec = ServerSpec { share: Share::First, preload, ..spec };
    favour_vital(&*serving.volumes.files(dataset)?, kind.connector.layout())?;
    let options = VdbOptions {
        settings: vdb.settings.clone(),
        memory_bytes: vdb.memory_bytes,
        keep_source_logins: vdb.keep_source_logins,
        // A gateway has it in the server's place.
        network: if vdb.gateway.is_some() { None } else { exposure::network(serving, vdb)? },
        reaches: vdb.reaches.clone(),
    };
    let server = kind.connector.start(spec, Role::Vdb(options))?;
    let opened = match fresh {
        true => grant(serving, vdb, &kind, &*server, &password_key(vdb.id)),
        false => server.wait_ready(READY_DEADLINE),
    };
    let opened = opened.and_then(|()| prepare(&*server));
    let opened = opened.and_then(|()| gateways::serve(serving, vdb, &*server));
    if let Err(failure) = opened {
        // It may be running although it cannot be used.
        let _ = server.stop(StopMode::Immediate, READY_DEADLINE);
        return Err(failure);
    }
    if let Some(group) = servers::group_of(&*server) {
        // From now on it has what others have; where that cannot be set, it had no more before.
        let _ = group.share_processors();
    }
    serving.servers.add(&key, server);
    Ok(())
}

/// The dataset of its present state.
pub fn present_dataset(vdb: &Vdb) -> Result<DatasetId, Failure> {
    vdb.dataset.ok_or_else(|| Failure::internal(format!("'{}' has no dataset", vdb.name)))
}

/// Gives a running VDB the password that is kept as its next one. Sessions stay.
pub fn change_password(serving: &Serving, vdb: &Vdb) -> Result<(), Failure> {
    let server = serving.servers.get(&vdb_key(vdb.id)).ok_or_else(|| {
        let message = format!("'{}' does not run: its password cannot be changed", vdb.name);
        let hint = format!("start it: offshoot vdb start {}", vdb.name);
        Failure::new(ErrorKind::WrongState, message, hint)
    })?;
    let kind = Kind::of_vdb(serving, vdb)?;
    grant(serving, vdb, &kind, &*server, &next_password_key(vdb.id))
}

/// Waits until a server is ready and gives it to the users of its VDB, with the password kept under a
/// key.
fn grant(
    serving: &Serving,
    vdb: &Vdb,
    kind: &Kind,
    server: &dyn Server,
    password: &str,
) -> Result<(), Failure> {
    let password = match serving.catalog.secret(password)? {
        Some(password) => password,
        // It was forgotten with a lost key.
        None => {
            let new = Secret::new(kind.connector.new_password());
            serving.catalog.put_secret(password, &new)?;
            new
        }
    };
    let source = kind::source_of(serving, vdb.parent.owner)?;
    let grant = Grant {
        password,
        superuser: vdb.superuser,
        keep_source_logins: vdb.keep_source_logins,
        keep_foreign_servers: vdb.keep_foreign_servers,
        preferred_database: source.and_then(|one| kind.connector.database_of(&one.source)),
    };
    let Granted { database, ties } = server.grant(&grant, READY_DEADLINE)?;
    Ok(serving.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        if let Some(ties) = ties {
            tx.update(vdb.id, |vdb: &mut Vdb| vdb.ties = ties)?;
        }
        tx.put_secret(&database_key(vdb.id), &Secret::new(database))
    })?)
}

/// Tells the store which files of a server's data matter most.
pub fn favour_vital(files: &FileSystem, layout: Layout) -> Result<(), Failure> {
    for directory in layout.vital {
        let path = Path::new(layout.data).join(directory);
        if files.exists(&path)? {
            files.favour_directory(&path)?;
        }
    }
    Ok(())
}
