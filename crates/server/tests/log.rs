//! What the engine's log says about requests.
#![allow(clippy::unwrap_used)]

mod stand_in;

use stand_in::served;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_pool_is_no_error_of_the_engine_but_a_defect_is() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
    let (http, token) = served();
    let status = |name: &str| {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        let address = format!("http://{}/api/v1/dsources/{name}", http.local_addr());
        let bearer = format!("Bearer {}", token.reveal());
        agent.get(address).header("authorization", bearer).call().unwrap().status().as_u16()
    };
    assert_eq!(status("full"), 507);
    assert!(!log.text().contains("ERROR"), "{}", log.text());
    assert_eq!(status("panic"), 500);
    assert!(log.text().contains("ERROR"), "{}", log.text());
    http.stop();
}
