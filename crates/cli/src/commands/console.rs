//! `offshoot console`

use super::Session;
use offshoot_types::Failure;
use serde::Serialize;
use std::net::SocketAddr;

/// A link to the console.
#[derive(Serialize)]
struct Link {
    /// Signs in, once.
    url: String,
    /// Until when.
    expires_at: String,
}

/// Prints a link that signs in to the console.
pub fn run(session: &Session) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    let base = match client.url() {
        Some(base) => base,
        None => {
            let status = client.status()?;
            let scheme = if status.tls_fingerprint.is_some() { "https" } else { "http" };
            format!("{scheme}://{}", reached_by(&status.listen))
        }
    };
    let code = client.create_console_code()?;
    let link = Link { url: base + &code.path, expires_at: code.expires_at.to_string() };
    if !output.json {
        eprintln!("signs in once, within ten minutes:");
    }
    output.print(&link, |link| link.url.clone());
    Ok(())
}

/// The address by which this host reaches an engine that listens there.
fn reached_by(listen: &str) -> String {
    match listen.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => format!("localhost:{}", address.port()),
        _ => listen.to_owned(),
    }
}
