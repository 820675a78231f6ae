//! A server of our own that speaks just enough of protocol 3.0.

use offshoot_postgres::source::{Password, Source};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A password that must not be told to anybody.
pub const PASSWORD: &str = "correct horse";

/// What a server does with one connection.
pub type Script = dyn Fn(&mut Peer) -> io::Result<()> + Send + Sync;

/// A listening server; it ends with the test's process.
pub struct Fake {
    port: u16,
    /// All that clients sent.
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Fake {
    /// Runs `script` with each client, after the client's greeting.
    pub fn start(script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (script, heard): (Arc<Script>, _) = (Arc::new(script), Arc::default());
        let fake = Fake { port, heard: Arc::clone(&heard) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, heard) = (Arc::clone(&script), Arc::clone(&heard));
                std::thread::spawn(move || {
                    let mut peer = Peer { stream, heard, gone: AtomicBool::new(false) };
                    if peer.greeting().is_ok() {
                        let _ = script(&mut peer);
                    }
                });
            }
        });
        fake
    }

    pub fn source(&self) -> Source {
        self.source_with("")
    }

    pub fn source_with(&self, query: &str) -> Source {
        let uri = format!("postgresql://linker@127.0.0.1:{}/postgres{query}", self.port);
        Source::parse(&uri, Some(Password::new(PASSWORD))).unwrap()
    }

    /// Whether clients sent this, at any time.
    pub fn heard(&self, bytes: &[u8]) -> bool {
        self.heard.lock().unwrap().windows(bytes.len()).any(|window| window == bytes)
    }
}

/// One client.
pub struct Peer {
    stream: TcpStream,
    heard: Arc<Mutex<Vec<u8>>>,
    gone: AtomicBool,
}

impl Peer {
    fn read(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        self.heard.lock().unwrap().extend_from_slice(&bytes);
        Ok(bytes)
    }

    fn length(&mut self) -> io::Result<usize> {
        let length = self.read(4)?;
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        Ok(length.saturating_sub(4).min(1 << 20))
    }

    /// Reads what a client begins with; has neither TLS nor Kerberos.
    fn greeting(&mut self) -> io::Result<()> {
        loop {
            let length = self.length()?;
            let body = self.read(length)?;
            match u32::from_be_bytes(body[..4].try_into().unwrap()) {
                80_877_103 | 80_877_104 => self.raw(b"N")?,
                _ => return Ok(()),
            }
        }
    }

    /// The client's next message: its kind and what it holds.
    pub fn next(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let kind = self.read(1)?[0];
        let length = self.length()?;
        Ok((kind, self.read(length)?))
    }

    /// The text of the client's next query.
    pub fn query(&mut self) -> io::Result<String> {
        loop {
            if let (b'Q', body) = self.next()? {
                return Ok(String::from_utf8_lossy(&body).trim_end_matches('\0').to_owned());
            }
        }
    }

    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).inspect_err(|_| self.gone.store(true, Ordering::Relaxed))
    }

    pub fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        self.raw(&[&[kind][..], &length, body].concat())
    }

    /// Lets the client in without a password.
    pub fn admit(&mut self) -> io::Result<()> {
        self.send(b'R', &0_u32.to_be_bytes())?;
        let version =
            format!("server_version\0{}.0\0", super::super::server::tools().installation.major);
        for parameter in ["client_encoding\0UTF8\0", "integer_datetimes\0on\0", &version] {
            self.send(b'S', parameter.as_bytes())?;
        }
        self.send(b'K', &[0; 8])?;
        self.ready()
    }

    /// The same, and answers the statement that a session begins with.
    pub fn admit_session(&mut self) -> io::Result<()> {
        self.admit()?;
        self.query()?;
        self.send(b'C', b"SET\0")?;
        self.ready()
    }

    pub fn ready(&mut self) -> io::Result<()> {
        self.send(b'Z', b"I")
    }

    pub fn columns(&mut self, count: u16) -> io::Result<()> {
        let mut body = count.to_be_bytes().to_vec();
        for at in 0..count {
            body.extend(format!("c{at}\0").bytes());
            // No table, no column; text, of any length; in text.
            body.extend([&[0; 6][..], &25_u32.to_be_bytes(), &[255; 6], &[0; 2]].concat());
        }
        self.send(b'T', &body)
    }

    pub fn row(&mut self, values: &[Option<&[u8]>]) -> io::Result<()> {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            match value {
                Some(bytes) => {
                    body.extend((bytes.len() as u32).to_be_bytes());
                    body.extend_from_slice(bytes);
                }
                None => body.extend([255; 4]),
            }
        }
        self.send(b'D', &body)
    }

    /// A whole answer of one row.
    pub fn answer(&mut self, values: &[Option<&[u8]>]) -> io::Result<()> {
        self.one_row(values)?;
        self.ready()
    }

    /// An answer of one row, after which more may come.
    pub fn one_row(&mut self, values: &[Option<&[u8]>]) -> io::Result<()> {
        self.columns(values.len() as u16)?;
        self.row(values)?;
        self.send(b'C', b"SELECT 1\0")
    }

    pub fn error(&mut self, kind: u8, message: &str, hint: &str) -> io::Result<()> {
        let body = format!("SERROR\0VERROR\0C42501\0M{message}\0H{hint}\0\0");
        self.send(kind, body.as_bytes())
    }

    /// One byte a second, for as long as somebody listens.
    pub fn drip(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes.iter().cycle() {
            self.raw(&[*byte])?;
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        Ok(())
    }
}
