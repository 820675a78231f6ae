//! What `/metrics` of a real engine says.

use crate::Testbed;
use anyhow::{Result, ensure};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// What the engine tells the bearer of a token, or the owner of its socket.
///
/// # Errors
/// When it tells nothing.
pub fn metrics(bed: &Testbed, token: Option<&str>) -> Result<String> {
    let mut stream = UnixStream::connect(bed.engine.pool().join("engine.socket"))?;
    let bearer = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{bearer}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(answer)
}

/// One of its samples; none that is not there.
pub fn sample(text: &str, name: &str) -> Option<f64> {
    let of_it = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(of_it)
}
