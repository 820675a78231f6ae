//! One request and its answer.

use crate::Target;
use crate::target::Endpoint;
use offshoot_api::ErrorBody;
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use ureq::http::{Response, StatusCode};

/// How long the engine may take for one answer. Long work is a job, so this is generous.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A typed client of one engine. Cheap to use from several threads.
pub struct Client {
    target: Target,
    endpoint: Mutex<Endpoint>,
    agent: ureq::Agent,
}

/// Leaves out the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("target", &self.target).finish_non_exhaustive()
    }
}

/// What a request does.
pub(crate) enum Verb {
    Get,
    Post,
    Delete,
}

impl Client {
    /// A client of an engine. Finds its address and token; the first request talks to it.
    ///
    /// # Errors
    /// `engine_unreachable` if the pool has no engine, `unauthorized` if the token cannot be read,
    /// `invalid_input` for a wrong address.
    pub fn new(target: Target) -> Result<Self, Failure> {
        let endpoint = Mutex::new(target.endpoint()?);
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_TIMEOUT))
            .http_status_as_error(false)
            // The environment's proxy must never see the token.
            .proxy(None)
            .max_redirects(0)
            // A kept connection to an engine that has restarted since would fail the next request.
            .max_idle_connections(0)
            .build();
        Ok(Client { target, endpoint, agent: config.into() })
    }

    /// The engine this client talks to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Finds the engine again, as it may have come back on another port.
    pub(crate) fn find_again(&self) {
        if let Ok(found) = self.target.endpoint() {
            *self.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
    }

    pub(crate) fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.call(Verb::Get, path, None)
    }

    pub(crate) fn post<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.call(Verb::Post, path, None)
    }

    pub(crate) fn delete<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.call(Verb::Delete, path, None)
    }

    pub(crate) fn post_json<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| {
            Failure::internal(format!("the request cannot be written: {error}"))
        })?;
        self.call(Verb::Post, path, Some(body))
    }

    fn call<A: DeserializeOwned>(
        &self,
        verb: Verb,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<A, Failure> {
        let endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let url = format!("{}{path}", endpoint.base);
        let bearer = format!("Bearer {}", endpoint.token);
        let sent = match (verb, body) {
            (Verb::Get, _) => self.agent.get(&url).header("authorization", bearer).call(),
            (Verb::Delete, _) => self.agent.delete(&url).header("authorization", bearer).call(),
            (Verb::Post, None) => {
                self.agent.post(&url).header("authorization", bearer).send_empty()
            }
            (Verb::Post, Some(json)) => self
                .agent
                .post(&url)
                .header("authorization", bearer)
                .header("content-type", "application/json")
                .send(&json[..]),
        };
        let answer = sent.map_err(|error| self.unreachable(&endpoint.base, &error))?;
        self.read_answer(&endpoint.base, answer)
    }

    fn read_answer<A: DeserializeOwned>(
        &self,
        base: &str,
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

    fn unreachable(&self, base: &str, error: &ureq::Error) -> Failure {
        let why = match error {
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

/// The failure that an answer with an error status stands for.
fn refusal(base: &str, status: StatusCode, body: &[u8]) -> Failure {
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
