//! The kind of an object: the connector and the version that its servers need.

use crate::core::Core;
use jiff::Timestamp;
use offshoot_connector::Connector;
use offshoot_domain::{ConnectorState, Dsource, Owner, Position, Vdb};
use offshoot_os::process::User;
use offshoot_types::{Failure, LogPosition};
use std::collections::HashMap;
use std::sync::Arc;

/// What the servers of an object need.
#[derive(Clone)]
pub struct Kind {
    pub connector: Arc<dyn Connector>,
    /// The version of the database, as its source reports it.
    pub version: String,
}

impl Kind {
    /// The kind of a dSource or VDB.
    pub fn of(core: &Core, owner: Owner) -> Result<Kind, Failure> {
        match owner {
            Owner::Dsource(id) => Kind::of_dsource(core, &core.catalog.get(id)?),
            Owner::Vdb(id) => Kind::of_vdb(core, &core.catalog.get(id)?),
        }
    }

    /// The kind of a dSource.
    pub fn of_dsource(core: &Core, dsource: &Dsource) -> Result<Kind, Failure> {
        let connector = core.connectors.find(&dsource.connector)?.clone();
        Ok(Kind { connector, version: dsource.server_version.clone() })
    }

    /// The kind of a VDB.
    pub fn of_vdb(core: &Core, vdb: &Vdb) -> Result<Kind, Failure> {
        let connector = core.connectors.find(&vdb.connector)?.clone();
        Ok(Kind { connector, version: vdb.server_version.clone() })
    }

    /// Owner of what servers use: user id and group id.
    pub fn server_owner(&self) -> (u32, u32) {
        match self.connector.server_user() {
            Some(user) => (user.uid, user.gid),
            None => User::own_ids(),
        }
    }
}

/// A position as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPosition {
    /// The position in the log, as its connector writes it.
    pub log: String,
    /// The database's clock there.
    pub time: Timestamp,
}

/// Writes positions of one object for users.
#[derive(Clone)]
pub struct PositionWriter {
    connector: Arc<dyn Connector>,
    state: Arc<ConnectorState>,
}

impl PositionWriter {
    /// For a dSource, or for a VDB by the dSource it comes from.
    pub fn of(core: &Core, owner: Owner) -> Result<PositionWriter, Failure> {
        PositionWriters::new(core).of(owner)
    }

    fn new(kind: Kind, state: ConnectorState) -> PositionWriter {
        PositionWriter { connector: kind.connector, state: Arc::new(state) }
    }

    /// The text of a position.
    pub fn write(&self, position: LogPosition) -> String {
        self.connector.write_position(&self.state, position)
    }

    /// The position of a text.
    pub fn read(&self, text: &str) -> Result<LogPosition, Failure> {
        self.connector.read_position(&self.state, text)
    }

    /// A position with its time.
    pub fn show(&self, position: Position) -> ShownPosition {
        ShownPosition { log: self.write(position.log), time: position.time }
    }
}

/// The writers of positions for a list: one for each dSource that its objects come from, which is read once.
pub struct PositionWriters<'a> {
    core: &'a Core,
    /// None for what comes from nowhere any more.
    known: HashMap<Owner, Option<PositionWriter>>,
}

impl<'a> PositionWriters<'a> {
    /// None is made yet.
    pub fn new(core: &'a Core) -> Self {
        PositionWriters { core, known: HashMap::new() }
    }

    /// For a dSource or VDB.
    pub fn of(&mut self, owner: Owner) -> Result<PositionWriter, Failure> {
        match self.by_source(owner)? {
            Some(writer) => Ok(writer),
            None => Ok(PositionWriter::new(Kind::of(self.core, owner)?, ConnectorState::default())),
        }
    }

    /// For a VDB whose record is at hand.
    pub fn of_vdb(&mut self, vdb: &Vdb) -> Result<PositionWriter, Failure> {
        match self.by_source(vdb.parent.owner)? {
            Some(writer) => Ok(writer),
            None => {
                Ok(PositionWriter::new(Kind::of_vdb(self.core, vdb)?, ConnectorState::default()))
            }
        }
    }

    /// That of the dSource an object comes from in the end.
    fn by_source(&mut self, owner: Owner) -> Result<Option<PositionWriter>, Failure> {
        let (mut at, mut way) = (owner, Vec::new());
        let found = loop {
            if let Some(known) = self.known.get(&at) {
                break known.clone();
            }
            way.push(at);
            match at {
                Owner::Dsource(id) => match self.core.catalog.find::<Dsource>(id)? {
                    Some(one) => {
                        let kind = Kind::of_dsource(self.core, &one)?;
                        break Some(PositionWriter::new(kind, one.connector_state));
                    }
                    None => break None,
                },
                Owner::Vdb(id) => match self.core.catalog.find::<Vdb>(id)? {
                    Some(vdb) => at = vdb.parent.owner,
                    None => break None,
                },
            }
        };
        self.known.extend(way.into_iter().map(|one| (one, found.clone())));
        Ok(found)
    }
}

/// The dSource that an object ultimately comes from; none if it has been removed.
pub fn source_of(core: &Core, owner: Owner) -> Result<Option<Dsource>, Failure> {
    let mut owner = owner;
    loop {
        match owner {
            Owner::Dsource(id) => return Ok(core.catalog.find(id)?),
            Owner::Vdb(id) => match core.catalog.find::<Vdb>(id)? {
                Some(vdb) => owner = vdb.parent.owner,
                None => return Ok(None),
            },
        }
    }
}
