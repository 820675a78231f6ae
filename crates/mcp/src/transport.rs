//! Messages on stdin and stdout, a line each.
//!
//! rmcp passes over lines that are no JSON, and the other side waits for an answer in vain. So lines are looked at before it
//! reads them, and it is told of those that it never sees.

use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::io::{DuplexStream, Stdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A longer line is refused; rmcp's limit, too.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Stdin and stdout.
pub(crate) struct Stdio {
    inner: AsyncRwTransport<RoleServer, DuplexStream, Stdout>,
    refused: mpsc::Receiver<ErrorData>,
    /// The answer to a refused line, being written: `receive` may be dropped while it waits for it.
    telling: Option<JoinHandle<io::Result<()>>>,
}

impl Stdio {
    /// Takes both, in a runtime.
    pub(crate) fn open() -> Stdio {
        let (passed, read) = tokio::io::duplex(64 << 10);
        let (refuse, refused) = mpsc::channel(1);
        // It ends with stdin, or with whoever reads what it passes on.
        tokio::spawn(pass_on(tokio::io::stdin(), passed, refuse));
        let inner = AsyncRwTransport::new_server(read, tokio::io::stdout())
            .with_max_line_length(LINE_BYTES_MAX);
        Stdio { inner, refused, telling: None }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(telling) = &mut self.telling {
                let told = telling.await;
                self.telling = None;
                told.ok()?.ok()?;
            }
            tokio::select! {
                biased;
                Some(error) = self.refused.recv() => {
                    let answer = self.inner.send(JsonRpcMessage::error(error, None));
                    self.telling = Some(tokio::spawn(answer));
                }
                message = self.inner.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

/// Passes lines of JSON on until there are no more, and says of each other one what is wrong with it.
async fn pass_on(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    refuse: mpsc::Sender<ErrorData>,
) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while let Ok(1..) = read_line(&mut input, &mut line).await {
        let passed = match parse_error(&line) {
            Some(error) => refuse.send(ErrorData::parse_error(error, None)).await.is_ok(),
            None => output.write_all(&line).await.is_ok(),
        };
        if !passed {
            return;
        }
    }
}

/// Reads a line with its end, which the last one may lack; 0 if there is none. Of one that is too long there is the beginning.
async fn read_line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<usize> {
    line.clear();
    let mut read = input.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', line).await?;
    let mut rest = Vec::new();
    while read == LINE_BYTES_MAX + 1 && line.last() != Some(&b'\n') && rest.last() != Some(&b'\n') {
        rest.clear();
        if input.take(64 << 10).read_until(b'\n', &mut rest).await? == 0 {
            break;
        }
    }
    if read > 0 && read <= LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        line.push(b'\n');
        read += 1;
    }
    Ok(read)
}

/// Why a line is no message, if it is none.
fn parse_error(line: &[u8]) -> Option<String> {
    if line.len() > LINE_BYTES_MAX {
        return Some(format!("a message has {} MiB at most", LINE_BYTES_MAX >> 20));
    }
    let text = match std::str::from_utf8(line) {
        Ok(text) => text.trim_start_matches('\u{feff}'),
        Err(error) => return Some(format!("a message is UTF-8: {error}")),
    };
    if text.trim().is_empty() {
        return None;
    }
    // As a value: what is nested too deeply for rmcp is so here.
    let parsed = serde_json::from_str::<serde_json::Value>(text);
    parsed.err().map(|error| format!("a message is JSON: {error}"))
}

#[cfg(test)]
mod tests;
