//! One request and its answer.

use crate::Target;
use crate::local::{LocalConnector, NoLookup, Stranger};
use crate::target::{Endpoint, Route, normal_url};
use crate::tls::{OtherCertificate, TlsConnector};
use offshoot_api::ErrorBody;
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use ureq::http::request::Builder;
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::unversioned::resolver::DefaultResolver;

/// How long the engine may take for one answer. Long work is a job, so this is generous.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// What requests by the Unix socket call the engine's host.
const LOCAL: &str = "http://localhost";
/// Bytes of a stream that are passed on at a time.
const STREAM_BYTES: usize = 256 << 10;
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A typed client of one engine. Cheap to use from several threads.
pub struct Client {
    target: Target,
    way: Mutex<Way>,
}

/// Where requests go, and what sends them.
#[derive(Clone)]
struct Way {
    endpoint: Endpoint,
    agent: ureq::Agent,
}

impl Way {
    fn to(endpoint: Endpoint) -> Result<Way, Failure> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_TIMEOUT))
            .http_status_as_error(false)
            // The environment's proxy must never see the token.
            .proxy(None)
            .max_redirects(0)
            // A kept connection to an engine that has restarted since would fail the next request.
            .max_idle_connections(0)
            .build();
        let agent = match &endpoint.route {
            Route::Url(_) => config.into(),
            Route::Socket(path) => {
                ureq::Agent::with_parts(config, LocalConnector::new(path), NoLookup)
            }
            Route::Tls { fingerprint, .. } => {
                let connector = TlsConnector::new(fingerprint)?;
                ureq::Agent::with_parts(config, connector, DefaultResolver::default())
            }
        };
        Ok(Way { endpoint, agent })
    }
}

/// Leaves out the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of an engine. Finds where it answers; the first request talks to it.
    ///
    /// # Errors
    /// `engine_unreachable` if the pool has no engine, `unauthorized` if the token cannot be read,
    /// `invalid_input` for a wrong address.
    pub fn new(target: Target) -> Result<Self, Failure> {
        let way = Mutex::new(Way::to(target.endpoint()?)?);
        Ok(Client { target, way })
    }

    /// The address that was named, as `https://engine.example:7640`; none for the engine of a pool of this host.
    pub fn url(&self) -> Option<String> {
        match &self.target {
            Target::Pool { .. } => None,
            Target::Server { url, .. } => normal_url(url).ok(),
        }
    }

    /// The engine this client talks to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Finds the engine again, as it may have come back on another port.
    pub(crate) fn find_again(&self) {
        if let Ok(found) = self.target.endpoint().and_then(Way::to) {
            *self.way.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
    }

    pub(crate) fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.call(Method::GET, path, None)
    }

    pub(crate) fn post<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.call(Method::POST, path, None)
    }

    pub(crate) fn delete<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.call(Method::DELETE, path, None)
    }

    pub(crate) fn post_json<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| {
            Failure::internal(format!("the request cannot be written: {error}"))
        })?;
        self.call(Method::POST, path, Some(body))
    }

    fn call<A: DeserializeOwned>(
        &self,
        verb: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<A, Failure> {
        let (route, agent, mut request) = self.begin(verb, path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let sent = request
            .body(body.unwrap_or_default())
            .map_err(ureq::Error::from)
            .and_then(|request| agent.run(request));
        let answer = sent.map_err(|error| self.unreachable(&route, &error))?;
        self.read_answer(&route, answer)
    }

    /// Where a request goes, what sends it, and its head.
    fn begin(&self, verb: Method, path: &str) -> (Route, ureq::Agent, Builder) {
        let Way { endpoint, agent } =
            self.way.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Endpoint { route, token } = endpoint;
        let base = match &route {
            Route::Url(base) | Route::Tls { base, .. } => base,
            Route::Socket(_) => LOCAL,
        };
        let mut request = Request::builder().method(verb).uri(format!("{base}{path}"));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        (route, agent, request)
    }

    /// Gets what is as long as a database, however long that takes.
    pub(crate) fn download(&self, path: &str, out: &mut dyn Write) -> Result<u64, Failure> {
        let (route, agent, request) = self.begin(Method::GET, path);
        let sent = request.body(()).map_err(ureq::Error::from).and_then(|request| {
            agent.run(agent.configure_request(request).timeout_global(None).build())
        });
        let mut answer = sent.map_err(|error| self.unreachable(&route, &error))?;
        if !answer.status().is_success() {
            return self.read_answer(&route, answer);
        }
        let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; STREAM_BYTES];
        let mut got = 0;
        loop {
            let len = body.read(&mut buffer).map_err(|error| {
                let message = format!("the engine stopped after {got} bytes: {error}");
                let hint = "see why in its log; then try again";
                Failure::new(ErrorKind::EngineUnreachable, message, hint)
            })?;
            if len == 0 {
                return Ok(got);
            }
            out.write_all(&buffer[..len]).map_err(|error| {
                let message = format!("it cannot be written: {error}");
                Failure::new(ErrorKind::InvalidInput, message, "name a place with room for it")
            })?;
            got += len as u64;
        }
    }

    /// Sends what is as long as a database, however long that takes.
    pub(crate) fn upload<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &mut dyn Read,
    ) -> Result<A, Failure> {
        let (route, agent, request) = self.begin(Method::POST, path);
        let request = request.header("content-type", "application/octet-stream");
        let mut body = body;
        let body = ureq::SendBody::from_reader(&mut body);
        let sent = request.body(body).map_err(ureq::Error::from).and_then(|request| {
            agent.run(agent.configure_request(request).timeout_global(None).build())
        });
        self.read_answer(&route, sent.map_err(|error| self.unreachable(&route, &error))?)
    }

    fn read_answer<A: DeserializeOwned>(
        &self,
        base: &Route,
        mut answer: Response<ureq::Body>,
    ) -> Result<A, Failure> {
        let status = answer.status();
        let body = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec()
            .map_err(|error| self.unreachable(base, &error))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| {
                Failure::internal(format!(
                    "the answer of the engine at {base} is not understood: {error}; client and engine \
                     may be of different versions"
                ))
            });
        }
        Err(refusal(base, status, &body))
    }

    fn unreachable(&self, base: &Route, error: &ureq::Error) -> Failure {
        if let ureq::Error::Io(error) = error
            && let Some(other) = OtherCertificate::of(error)
        {
            return changed(base, other);
        }
        let why = match error {
            ureq::Error::Io(error) if is_stranger(error) => {
                return Failure::new(
                    ErrorKind::Unauthorized,
                    format!("nothing was sent to {base}: {error}"),
                    self.target.start_hint(),
                );
            }
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Failure::new(
                    ErrorKind::Unauthorized,
                    format!("the engine at {base} does not let this user connect"),
                    "run the command as the user who runs the engine; or have the engine started with \
                     --socket-group GROUP and join that group",
                );
            }
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "nothing listens there".to_owned()
            }
            ureq::Error::Timeout(_) => {
                format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())
            }
            other => other.to_string(),
        };
        Failure::new(
            ErrorKind::EngineUnreachable,
            format!("the engine at {base} cannot be reached: {why}"),
            self.target.start_hint(),
        )
    }
}

fn changed(base: &Route, other: &OtherCertificate) -> Failure {
    Failure::new(
        ErrorKind::Unauthorized,
        format!("nothing was sent to {base}: {other}, which is not what the engine is known by"),
        format!(
            "if the engine was given another certificate, compare with `offshoot status` on its host: \
             offshoot login {base} --fingerprint sha256:…"
        ),
    )
}

fn is_stranger(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Stranger>())
}

/// The failure that an answer with an error status stands for.
fn refusal(base: &Route, status: StatusCode, body: &[u8]) -> Failure {
    if let Ok(body) = serde_json::from_slice::<ErrorBody>(body) {
        return body.error.into();
    }
    // A newer engine may know kinds that we do not; its message is still the best there is.
    let said = |field: &str| {
        let value = serde_json::from_slice::<serde_json::Value>(body).ok()?;
        Some(value.get("error")?.get(field)?.as_str()?.to_owned())
    };
    match said("message") {
        Some(message) => {
            Failure::new(ErrorKind::Internal, message, said("hint").unwrap_or_default())
        }
        None => Failure::new(
            ErrorKind::EngineUnreachable,
            format!("what answers at {base} is no engine of Offshoot (HTTP status {status})"),
            "check the address; offshoot serve says on which one it answers",
        ),
    }
}
