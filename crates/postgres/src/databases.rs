//! Work inside each database of a server.
//!
//! Opening a session in a database of a fresh copy takes longer than most work there, as its catalogs
//! are in no memory yet. So databases are visited side by side.

use std::sync::Mutex;
use std::time::Duration;

use offshoot_os::spawn_or_run;
use offshoot_types::Failure;

use crate::server::Server;
use crate::session::Session;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Databases visited at the same time, besides the one that a session is open in.
const SIDE_BY_SIDE: usize = 3;

/// Databases that take connections: not those whose removal was begun, which have the limit -2.
pub(crate) const DATABASES: &str = "SELECT datname FROM pg_catalog.pg_database \
    WHERE datallowconn AND datconnlimit <> -2 ORDER BY oid";

/// Does something in each database that takes connections, and returns what came of it, by database in
/// the order of their creation. The session that is open is used for its own.
///
/// # Errors
/// The first of the work's, or as [`Server::connect_to`].
pub(crate) fn in_each<T: Send>(
    server: &Server,
    session: &mut Session,
    work: impl Fn(&mut Session, &str) -> Result<T, Failure> + Sync,
) -> Result<Vec<(String, T)>, Failure> {
    let names = session.query_column(DATABASES, TIMEOUT)?;
    let here = session.query_column("SELECT pg_catalog.current_database()", TIMEOUT)?;
    let (here, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| here.contains(name));
    let waiting = Mutex::new(others.iter());
    let visit_others = || {
        let mut done = Vec::new();
        loop {
            // Not held while the work is done.
            let next = waiting.lock().unwrap_or_else(|error| error.into_inner()).next();
            let Some(name) = next else { return Ok(done) };
            done.push((name.to_string(), work(&mut server.connect_to(name)?, name)?));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let visitors: Vec<_> = (0..others.len().min(SIDE_BY_SIDE))
            .map(|_| spawn_or_run(scope, visit_others))
            .collect();
        let mut done = Vec::new();
        for name in here {
            done.push((name.clone(), work(session, name)?));
        }
        for visitor in visitors {
            let failed = |_| Err(Failure::internal("a thread that worked in databases panicked"));
            done.extend(visitor.join().unwrap_or_else(failed)?);
        }
        Ok::<_, Failure>(done)
    })?;
    done.sort_by_key(|(name, _)| names.iter().position(|one| one == name));
    Ok(done)
}
