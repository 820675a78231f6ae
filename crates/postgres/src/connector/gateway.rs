//! Gateways as the engine sees them.

use super::Postgres;
use super::server::RunningServer;
use crate::gateway::{self, RunningGateway};
use crate::session::{Session, quote_texts};
use offshoot_connector::{Absence, GatewaySpec, Gateways, Network, OpenGateway, Server};
use offshoot_gateway::{Backend, Hold, Request, Tls, Why};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long sessions that are at work when their server is to be stopped may go on.
const GRACE: Duration = Duration::from_secs(1);
/// How long the server may take to say how roles log in.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

impl Gateways for Postgres {
    fn open(&self, spec: &GatewaySpec) -> Result<Box<dyn OpenGateway>, Failure> {
        let program = self.gateway_program.as_ref().ok_or_else(|| {
            Failure::new(
                ErrorKind::HostUnprepared,
                "the path of this program is not known, and a gateway cannot be started",
                "leave out --gateway and --stop-when-idle",
            )
        })?;
        let gateway = gateway::open(&self.launcher, program, spec)?;
        Ok(Box::new(Opened { gateway, server_port: spec.server_port }))
    }
}

struct Opened {
    gateway: RunningGateway,
    server_port: u16,
}

impl OpenGateway for Opened {
    fn serve(&self, server: &dyn Server, network: Option<&Network>) -> Result<(), Failure> {
        let parked = self.gateway.ask(&Request::Status)?.parked_roles;
        let logins = match parked.is_empty() {
            true => BTreeMap::new(),
            false => {
                let session = RunningServer::of(server)?.with(crate::server::Server::connect);
                logins(&mut session?, &parked)?
            }
        };
        let tls = network.map(|network| Tls {
            certificate: network.certificate.clone(),
            key: network.key.reveal().to_owned(),
        });
        let allow = network.map(|network| network.exposure.allow.clone()).unwrap_or_default();
        let backend = Backend { port: self.server_port, tls, allow, logins };
        self.gateway.ask(&Request::Serve(backend)).map(drop)
    }

    fn hold(&self, why: Absence) -> Result<(), Failure> {
        let why = match why {
            Absence::Change => Why::Change,
            Absence::Asleep => Why::Asleep,
        };
        let grace_ms = GRACE.as_millis() as u64;
        let held = self.gateway.hold(Hold { grace_ms, why });
        held.map(drop).map_err(|failure| match why {
            Why::Asleep if failure.code == ErrorKind::WrongState => {
                Failure { code: ErrorKind::Busy, ..failure }
            }
            _ => failure,
        })
    }

    fn idle(&self) -> Result<Duration, Failure> {
        Ok(Duration::from_millis(self.gateway.ask(&Request::Status)?.idle_ms))
    }

    fn wishes(&self) -> Result<UnixStream, Failure> {
        self.gateway.connect()?.watch()
    }

    fn end(&self) -> Result<(), Failure> {
        self.gateway.end()
    }
}

/// How roles log in: what the server keeps of their passwords.
fn logins(session: &mut Session, roles: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let sql = format!(
        "SELECT rolname, rolpassword FROM pg_catalog.pg_authid \
         WHERE rolpassword IS NOT NULL AND rolname IN ({})",
        quote_texts(roles)
    );
    let rows = session.query(&sql, QUERY_TIMEOUT)?;
    let login = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
        Ok([Some(role), Some(login)]) => Some((role, login)),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(login).collect())
}
