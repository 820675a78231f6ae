//! Passing bytes on between a client and its server: one read, one write.

use crate::conversation::Conversation;
use crate::hub;
use crate::wire::{Client, Server};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// Why no more is passed on.
#[derive(Debug)]
pub(crate) enum Exit {
    /// The session was to be brought to rest, and is.
    AtRest,
    /// The client cannot be reached.
    ClientGone,
    /// The server closed the connection; the client has all that it said.
    ServerGone,
    /// One of the two does not speak the protocol.
    Broken,
}

/// Both directions of a session.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// How many of the client's unread bytes may pass on.
    cleared: usize,
    client_ended: bool,
    /// The server takes no more. What it still says is passed on.
    server_deaf: bool,
    server_ended: bool,
    /// The client's connection may hold bytes back.
    unflushed: bool,
}

impl Relay {
    /// Passes on what there is. With `resting`, requests that have not begun wait, and it ends when the session is at rest.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (client, server): (&mut Client, &mut Server),
        conversation: &mut Conversation,
        session: &mut hub::Session,
        resting: bool,
    ) -> Poll<Exit> {
        loop {
            let up = self.poll_up(cx, (client, server), conversation, resting);
            let down = self.poll_down(cx, (client, server), conversation);
            session.set_busy(!conversation.is_quiet());
            let (up, down) = match (up, down) {
                (Ok(up), Ok(down)) => (up, down),
                (Err(exit), _) | (_, Err(exit)) => return Poll::Ready(exit),
            };
            let drained = self.cleared == 0 && server.unread.is_empty() && !self.unflushed;
            if resting && drained && conversation.is_at_rest() {
                return Poll::Ready(if self.client_ended {
                    Exit::ClientGone
                } else {
                    Exit::AtRest
                });
            }
            if !(up || down) {
                return Poll::Pending;
            }
        }
    }

    /// From client to server. Returns whether anything moved.
    fn poll_up(
        &mut self,
        cx: &mut Context<'_>,
        (client, server): (&mut Client, &mut Server),
        conversation: &mut Conversation,
        resting: bool,
    ) -> Result<bool, Exit> {
        let mut moved = false;
        loop {
            if self.cleared == 0 && !client.unread.is_empty() {
                let passed = conversation.pass_up(client.unread.filled(), resting);
                self.cleared = passed.map_err(|_| Exit::Broken)?;
            }
            if self.cleared > 0 {
                let bytes = &client.unread.filled()[..self.cleared];
                match Pin::new(&mut server.stream).poll_write(cx, bytes) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(Ok(count)) if count > 0 => {
                        client.unread.consume(count);
                        self.cleared -= count;
                    }
                    Poll::Ready(_) => {
                        self.server_deaf = true;
                        client.unread.clear();
                        self.cleared = 0;
                    }
                }
                moved = true;
                continue;
            }
            // What waits for the next server is not read any further.
            if self.client_ended || self.server_deaf || !client.unread.is_empty() {
                return Ok(moved);
            }
            match client.unread.poll_fill(cx, Pin::new(&mut client.stream)) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => {
                    self.client_ended = true;
                    // It may still want the answers. The server ends when it has given them.
                    let _ = Pin::new(&mut server.stream).poll_shutdown(cx);
                }
                Poll::Ready(Err(_)) => return Err(Exit::ClientGone),
            }
            moved = true;
        }
    }

    /// From server to client. Returns whether anything moved.
    fn poll_down(
        &mut self,
        cx: &mut Context<'_>,
        (client, server): (&mut Client, &mut Server),
        conversation: &mut Conversation,
    ) -> Result<bool, Exit> {
        let mut moved = false;
        let gone = |_: io::Error| Exit::ClientGone;
        loop {
            if !server.unread.is_empty() {
                match Pin::new(&mut client.stream).poll_write(cx, server.unread.filled()) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(count) => match count.map_err(gone)? {
                        0 => return Err(Exit::ClientGone),
                        count => server.unread.consume(count),
                    },
                }
                self.unflushed = true;
                moved = true;
                continue;
            }
            if self.unflushed {
                match Pin::new(&mut client.stream).poll_flush(cx) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(flushed) => flushed.map_err(gone)?,
                }
                self.unflushed = false;
            }
            if self.server_ended {
                return Err(Exit::ServerGone);
            }
            match server.unread.poll_fill(cx, Pin::new(&mut server.stream)) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(count @ 1..)) => {
                    let filled = server.unread.filled();
                    let fresh = &filled[filled.len() - count..];
                    conversation.pass_down(fresh).map_err(|_| Exit::Broken)?;
                }
                Poll::Ready(_) => self.server_ended = true,
            }
            moved = true;
        }
    }
}
