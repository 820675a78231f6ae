//! A blocking connection to the server of a copy, for bulk data.
//!
//! Rows go through it at the speed of two processes on one host: a message is read where it was received, and what is
//! written is not copied. What the server refuses comes back without any value ([`Refusal`]). There are no
//! timeouts: nobody else uses the server, and whoever wants a statement to end ends its session.

use crate::engine_role::ENGINE_ROLE;
use crate::session::{OVERRIDES, Rows};
use bytes::{Buf, BytesMut};
use offshoot_types::Failure;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::Header;
use postgres_protocol::message::frontend;
use rustix::net::{RecvFlags, recv};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

mod refusal;

pub(crate) use refusal::Refusal;

/// How much is read at once.
const READ_BYTES: usize = 128 << 10;

/// How long [`Wire::next_copied`] waits before it says so.
const WAITING: Duration = Duration::from_millis(200);

/// A message's kind and its length.
const HEADER_BYTES: usize = 5;

// Messages of a server, by their first byte.
const AUTHENTICATION: u8 = b'R';
const BACKEND_KEY: u8 = b'K';
const COMPLETE: u8 = b'C';
const COPY_DATA: u8 = b'd';
const COPY_IN: u8 = b'G';
const DATA_ROW: u8 = b'D';
const ERROR: u8 = b'E';
const NOTICE: u8 = b'N';
const PARAMETER: u8 = b'S';
const READY: u8 = b'Z';

/// What every session of the masker has set. Values are written so that they are read back as they were, and no
/// trigger, rule or policy acts. What the server refuses could name values in its log, so it logs nothing.
const SETTINGS: &str = "SET log_min_messages = panic; SET log_error_verbosity = terse; \
    SET session_replication_role = replica; SET row_security = off; SET synchronous_commit = off; \
    SET \"DateStyle\" = 'ISO, YMD'; SET \"IntervalStyle\" = postgres; SET \"TimeZone\" = 'UTC'; \
    SET bytea_output = hex; SET extra_float_digits = 3; SET xmloption = content; SET lc_monetary = 'C'; \
    SET default_tablespace = ''; SET default_table_access_method = heap; \
    SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; \
    SET work_mem = '64MB'; SET maintenance_work_mem = '256MB'; SET jit = off";

/// Makes scans of a table return its rows in the order in which they lie there.
pub(crate) const IN_ORDER: &str =
    "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;";

/// Where the server of a copy is reached.
#[derive(Debug, Clone)]
pub struct Door {
    /// The path of its private socket.
    pub socket: PathBuf,
}

impl Door {
    /// That of a server of ours, on which the engine has its role.
    pub fn of(spec: &crate::server::ServerSpec) -> Door {
        Door { socket: spec.socket_dir().join(format!(".s.PGSQL.{}", spec.socket_port())) }
    }
}

/// Gets each message of an answer: its kind and what it holds.
type Take<'a> = dyn FnMut(u8, &[u8]) -> Result<(), Refusal> + 'a;

/// A session as the engine's superuser.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: UnixStream,
    /// What was received lies between `begin` and `end`.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Wire {
    /// Connects to a database that every server has, or had at first.
    pub(crate) fn connect_any(door: &Door) -> Result<Wire, Failure> {
        Wire::connect(door, "postgres").or_else(|_| Wire::connect(door, "template1"))
    }

    /// Connects to a database.
    pub(crate) fn connect(door: &Door, database: &str) -> Result<Wire, Failure> {
        let failed = |refusal: Refusal| refusal.into_failure(&format!("database {database}"));
        let mut wire = Wire::open(door, database).map_err(failed)?;
        wire.execute(SETTINGS).map_err(failed)?;
        Ok(wire)
    }

    fn open(door: &Door, database: &str) -> Result<Wire, Refusal> {
        let stream = UnixStream::connect(&door.socket)?;
        let mut wire = Wire { stream, buffer: vec![0; READ_BYTES], begin: 0, end: 0 };
        let options: Vec<String> = OVERRIDES.iter().map(|item| format!("-c {item}")).collect();
        let options = options.join(" ");
        let parameters = [
            ("user", ENGINE_ROLE),
            ("database", database),
            ("application_name", "offshoot masking"),
            ("client_encoding", "UTF8"),
            ("options", &options),
        ];
        let mut start = BytesMut::new();
        frontend::startup_message(parameters, &mut start)?;
        wire.stream.write_all(&start)?;
        wire.until_ready(&mut |kind, mut body| {
            match kind {
                AUTHENTICATION if body.try_get_i32() == Ok(0) => {}
                BACKEND_KEY | PARAMETER => {}
                _ => return Err(Refusal::unexpected()),
            }
            Ok(())
        })?;
        Ok(wire)
    }

    /// Runs statements; several run as one transaction.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<(), Refusal> {
        self.rows(sql).map(drop)
    }

    /// The rows that statements return.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Rows, Refusal> {
        let mut query = BytesMut::new();
        frontend::query(sql, &mut query)?;
        self.stream.write_all(&query)?;
        let mut rows = Rows::new();
        self.until_ready(&mut |kind, body| {
            if kind == DATA_ROW {
                rows.push(texts(body).ok_or_else(Refusal::unexpected)?);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first column of all rows, without NULLs.
    pub(crate) fn column(&mut self, sql: &str) -> Result<Vec<String>, Refusal> {
        let rows = self.rows(sql)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    /// Whether the server understands one statement; it does not run.
    pub(crate) fn understands(&mut self, sql: &str) -> Result<(), Refusal> {
        let mut parse = BytesMut::new();
        frontend::parse("", sql, [], &mut parse)?;
        frontend::sync(&mut parse);
        self.stream.write_all(&parse)?;
        self.until_ready(&mut |_, _| Ok(()))
    }

    /// Runs one statement `COPY … TO STDOUT`; `take` gets each row with its line end. It ends the copy by an error, and
    /// with it this connection's use.
    pub(crate) fn copy_out(
        &mut self,
        sql: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Result<Refusal, Failure>> {
        self.send_one(sql).map_err(Ok)?;
        let mut refused = None;
        loop {
            let Some((kind, length)) = self.whole_message().map_err(Ok)? else {
                self.receive().map_err(Ok)?;
                continue;
            };
            let body = self.body(length);
            match kind {
                COPY_DATA => take(body).map_err(Err)?,
                ERROR => refused = refused.or(Some(Refusal::of(body))),
                _ => {}
            }
            self.begin += length;
            if kind == READY || refused.as_ref().is_some_and(|refusal| refusal.fatal) {
                return refused.map_or(Ok(()), |refusal| Err(Ok(refusal)));
            }
        }
    }

    /// Begins one statement `COPY … TO STDOUT`, whose rows [`Wire::next_copied`] takes.
    pub(crate) fn begin_copy_out(&mut self, sql: &str) -> Result<(), Refusal> {
        self.send_one(sql)
    }

    /// The next row of a copy that was begun, with its line end; none: it has ended. While none comes, `waiting` is
    /// called; its error leaves the connection useless.
    pub(crate) fn next_copied(
        &mut self,
        row: &mut Vec<u8>,
        waiting: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<bool, Result<Refusal, Failure>> {
        let mut refused = None;
        loop {
            let Some((kind, length)) = self.whole_message().map_err(Ok)? else {
                self.stream.set_read_timeout(Some(WAITING)).map_err(|error| Ok(error.into()))?;
                if !self.receive_some().map_err(Ok)? {
                    waiting().map_err(Err)?;
                }
                continue;
            };
            let body = self.body(length);
            let mut copied = false;
            match kind {
                COPY_DATA => {
                    row.clear();
                    row.extend_from_slice(body);
                    copied = true;
                }
                ERROR => refused = refused.or(Some(Refusal::of(body))),
                _ => {}
            }
            self.begin += length;
            if copied {
                return Ok(true);
            }
            if kind == READY || refused.as_ref().is_some_and(|refusal| refusal.fatal) {
                self.stream.set_read_timeout(None).map_err(|error| Ok(error.into()))?;
                return refused.map_or(Ok(false), |refusal| Err(Ok(refusal)));
            }
        }
    }

    /// Begins one statement `COPY … FROM STDIN`.
    pub(crate) fn begin_copy_in(&mut self, sql: &str) -> Result<(), Refusal> {
        let mut query = BytesMut::new();
        frontend::query(sql, &mut query)?;
        self.stream.write_all(&query)?;
        loop {
            match self.next()? {
                (COPY_IN, _) => return Ok(()),
                (ERROR, body) => return Err(Refusal::of(&body)),
                (READY, _) => return Err(Refusal::unexpected()),
                _ => {}
            }
        }
    }

    /// Sends rows, each with its line end.
    pub(crate) fn send_rows(&mut self, rows: &[u8]) -> Result<(), Refusal> {
        // It says nothing while all is well.
        let mut first = [0];
        let asked = recv(&self.stream, &mut first, RecvFlags::DONTWAIT | RecvFlags::PEEK);
        if asked.is_ok() {
            match self.next()? {
                (ERROR, body) => return Err(Refusal::of(&body)),
                (NOTICE | PARAMETER, _) => {}
                _ => return Err(Refusal::unexpected()),
            }
        }
        let length = u32::try_from(rows.len() + 4).map_err(|_| Refusal::unexpected())?;
        let mut header = [COPY_DATA, 0, 0, 0, 0];
        header[1..].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&header)?;
        Ok(self.stream.write_all(rows)?)
    }

    /// Ends the statement, and returns how many rows the server has taken.
    pub(crate) fn end_copy_in(&mut self) -> Result<u64, Refusal> {
        let mut done = BytesMut::new();
        frontend::copy_done(&mut done);
        self.stream.write_all(&done)?;
        let mut rows = None;
        self.until_ready(&mut |kind, body| {
            if kind == COMPLETE {
                rows = copied(body);
            }
            Ok(())
        })?;
        rows.ok_or_else(Refusal::unexpected)
    }

    /// Sends a statement so that the server takes nothing but one.
    fn send_one(&mut self, sql: &str) -> Result<(), Refusal> {
        let mut all = BytesMut::new();
        frontend::parse("", sql, [], &mut all)?;
        let none: [(); 0] = [];
        let bound = frontend::bind("", "", [], none, |(), _| Ok(IsNull::Yes), [], &mut all);
        bound.map_err(|_| Refusal::unexpected())?;
        frontend::execute("", 0, &mut all)?;
        frontend::sync(&mut all);
        Ok(self.stream.write_all(&all)?)
    }

    /// Reads messages up to the end of an answer.
    fn until_ready(&mut self, take: &mut Take<'_>) -> Result<(), Refusal> {
        let mut refused = None;
        loop {
            match self.next()? {
                (READY, _) => return refused.map_or(Ok(()), Err),
                (ERROR, body) => {
                    let refusal = Refusal::of(&body);
                    if refusal.fatal {
                        return Err(refusal);
                    }
                    refused = refused.or(Some(refusal));
                }
                (NOTICE, _) => {}
                (kind, body) => take(kind, &body)?,
            }
        }
    }

    /// The next message: its kind and what it holds.
    fn next(&mut self) -> Result<(u8, Vec<u8>), Refusal> {
        loop {
            if let Some((kind, length)) = self.whole_message()? {
                let body = self.body(length).to_vec();
                self.begin += length;
                return Ok((kind, body));
            }
            self.receive()?;
        }
    }

    /// What the next message holds, whose length is known.
    fn body(&self, length: usize) -> &[u8] {
        self.buffer.get(self.begin + HEADER_BYTES..self.begin + length).unwrap_or_default()
    }

    /// The kind and the length of the next message, if all of it is there.
    fn whole_message(&mut self) -> Result<Option<(u8, usize)>, Refusal> {
        let received = self.buffer.get(self.begin..self.end).unwrap_or_default();
        let Some(header) = Header::parse(received)? else { return Ok(None) };
        let length = usize::try_from(header.len()).map_err(|_| Refusal::unexpected())? + 1;
        Ok((received.len() >= length).then_some((header.tag(), length)))
    }

    /// Receives more, behind what is there.
    fn receive(&mut self) -> Result<(), Refusal> {
        while !self.receive_some()? {}
        Ok(())
    }

    /// The same; false if nothing came in time.
    fn receive_some(&mut self) -> Result<bool, Refusal> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.buffer.len() < self.end + READ_BYTES {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.stream.read(room) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The rows that `COPY 12` says were copied.
fn copied(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?.trim_end_matches('\0');
    text.strip_prefix("COPY ")?.parse().ok()
}

/// The values of a `DataRow`: their number, then each with its length, which is -1 for NULL.
fn texts(mut row: &[u8]) -> Option<Vec<Option<String>>> {
    let count = row.try_get_i16().ok()?;
    let mut values = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(row.try_get_i32().ok()?).ok();
        let Some(length) = length else {
            values.push(None);
            continue;
        };
        let (value, rest) = row.split_at_checked(length)?;
        values.push(Some(String::from_utf8_lossy(value).into_owned()));
        row = rest;
    }
    Some(values)
}
