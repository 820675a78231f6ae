//! Archives: states in one direction, to be kept or carried.
//!
//! ```text
//!  0  8  OFSREPL1
//!  8  4  version
//! 12  4  0
//! 16     manifest · states … · blocks, everything before what refers to it … · end
//! ```
//! Nothing of an archive is visible in a store before its end was read and its digest compared.

use crate::walk::Walk;
use crate::wire::{self, Frame, FrameType, HEADER_LEN, Header, STATES_MAX, VERSION};
use crate::{Error, Result};
use offshoot_dataset::{Becomes, HeldState, Received, Store};
use offshoot_format::directory::TreeState;
use std::io::{Read, Write};

const MAGIC: &[u8; 8] = b"OFSREPL1";
/// The most states of one archive.
const ALL_STATES_MAX: usize = 1 << 20;

/// What has travelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Blocks.
    pub blocks: u64,
    /// Bytes of their content.
    pub raw_bytes: u64,
    /// Bytes of the archive.
    pub bytes: u64,
    /// Of a reader: blocks that its store had already.
    pub present: u64,
}

/// Progress; an error stops it.
pub type Tick<'a> = &'a mut dyn FnMut(&Tally) -> Result<()>;

/// Writes states, with what they are.
///
/// # Errors
/// Those of reading blocks, of writing, and of `tick`.
pub fn write(
    out: &mut dyn Write,
    manifest: &[u8],
    states: &[HeldState],
    tick: Tick<'_>,
) -> Result<Tally> {
    let mut writer = Writer { out, digest: blake3::Hasher::new(), tally: Tally::default() };
    let mut begin = MAGIC.to_vec();
    begin.extend_from_slice(&VERSION.to_le_bytes());
    begin.extend_from_slice(&[0; 4]);
    writer.put(&begin)?;
    writer.put(&Frame::Manifest(manifest.to_vec()).encode())?;
    for some in states.chunks(STATES_MAX) {
        let trees = some.iter().map(|state| state.tree().clone()).collect();
        writer.put(&Frame::States(trees).encode())?;
    }
    let mut walk = Walk::default();
    for state in states {
        walk.go(state, &mut |block| {
            writer.put(&wire::encode_block(block))?;
            writer.tally.blocks += 1;
            writer.tally.raw_bytes += u64::from(block.raw_len);
            tick(&writer.tally)
        })?;
    }
    let digest = *writer.digest.finalize().as_bytes();
    writer.put(&Frame::End(digest).encode())?;
    writer.out.flush()?;
    Ok(writer.tally)
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    digest: blake3::Hasher,
    tally: Tally,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.digest.update(bytes);
        self.tally.bytes += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

/// An archive of which the beginning was read.
pub struct Archive<R> {
    input: Input<R>,
    manifest: Vec<u8>,
    states: Vec<TreeState>,
    /// The first frame after the states.
    next: Option<Frame>,
}

impl<R: Read> Archive<R> {
    /// Reads what comes before the blocks.
    ///
    /// # Errors
    /// When it is no archive, of another version, damaged or cut off.
    pub fn open(input: R) -> Result<Archive<R>> {
        let mut input = Input::new(input);
        let mut begin = [0; HEADER_LEN];
        match input.fill(&mut begin) {
            Err(Error::CutOff { .. }) => return Err(Error::NotAnArchive),
            other => other?,
        }
        if &begin[..8] != MAGIC {
            return Err(Error::NotAnArchive);
        }
        input.digest.update(&begin);
        let version = u32::from_le_bytes([begin[8], begin[9], begin[10], begin[11]]);
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let Frame::Manifest(manifest) = input.frame()? else {
            return Err(input.damaged(0, "it does not begin with a manifest"));
        };
        let mut states = Vec::new();
        let next = loop {
            match input.frame()? {
                Frame::States(more) if states.len() + more.len() <= ALL_STATES_MAX => {
                    states.extend(more);
                }
                Frame::States(_) => return Err(input.damaged(0, "it has too many states")),
                frame => break frame,
            }
        };
        Ok(Archive { input, manifest, states, next: Some(next) })
    }

    /// What the states are.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// How many there are.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// Reads the blocks into a store. At the end, and only if all of it is there and sound, the states appear in it: each
    /// as `becomes` says. `tick` is asked after each block.
    ///
    /// # Errors
    /// Those of the archive, of the store and of `tick`; nothing is kept then.
    pub fn receive(
        mut self,
        store: &Store,
        becomes: &[Becomes],
        tick: Tick<'_>,
    ) -> Result<(Vec<Received>, Tally)> {
        if becomes.len() != self.states.len() {
            return Err(self.input.damaged(0, "its manifest does not fit its states"));
        }
        let receiving = store.receive()?;
        let mut tally = Tally::default();
        loop {
            let at = self.input.at;
            let frame = match self.next.take() {
                Some(frame) => frame,
                None => self.input.frame()?,
            };
            match frame {
                Frame::Block(block) => {
                    let raw_len = block.raw_len;
                    let (_, present) = match receiving.put(block) {
                        // A node that comes before what it refers to: not as an engine writes it.
                        Err(
                            error @ (offshoot_dataset::Error::Missing(_)
                            | offshoot_dataset::Error::Corrupt(_)),
                        ) => return Err(self.input.damaged(at, error)),
                        other => other?,
                    };
                    tally.present += u64::from(present);
                    tally.blocks += 1;
                    tally.raw_bytes += u64::from(raw_len);
                    tally.bytes = self.input.at;
                    tick(&tally)?;
                }
                Frame::End(digest) if Some(digest) == self.input.before_end => break,
                Frame::End(_) => return Err(self.input.damaged(at, "its digest is another")),
                _ => return Err(self.input.damaged(at, "a frame is where none of its type is")),
            }
        }
        if self.input.input.read(&mut [0])? > 0 {
            return Err(self.input.damaged(self.input.at, "something follows its end"));
        }
        tally.bytes = self.input.at;
        let states: Vec<_> = self.states.into_iter().zip(becomes.iter().copied()).collect();
        let received = match receiving.finish(&states) {
            Err(offshoot_dataset::Error::Missing(hash)) => {
                let problem = format!("block {hash} is not in it");
                return Err(Error::Damaged { at: tally.bytes, problem });
            }
            other => other?,
        };
        Ok((received, tally))
    }
}

struct Input<R> {
    input: R,
    digest: blake3::Hasher,
    at: u64,
    /// The digest of all that came before the last frame.
    before_end: Option<[u8; 32]>,
}

impl<R: Read> Input<R> {
    fn new(input: R) -> Input<R> {
        Input { input, digest: blake3::Hasher::new(), at: 0, before_end: None }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        match self.input.read_exact(buffer) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(Error::CutOff { at: self.at });
            }
            Err(error) => return Err(error.into()),
        }
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn frame(&mut self) -> Result<Frame> {
        let at = self.at;
        let mut bytes = [0; HEADER_LEN];
        self.fill(&mut bytes)?;
        let header = Header::decode(&bytes).map_err(|error| self.damaged(at, error))?;
        if header.kind == FrameType::End {
            self.before_end = Some(*self.digest.finalize().as_bytes());
        }
        self.digest.update(&bytes);
        // A length is believed only as far as bytes come.
        let mut payload = Vec::new();
        let limit = header.payload_len as u64;
        let got = (&mut self.input).take(limit).read_to_end(&mut payload)?;
        self.at += got as u64;
        if got < header.payload_len {
            return Err(Error::CutOff { at: self.at });
        }
        self.digest.update(&payload);
        header.frame(&bytes, payload).map_err(|error| self.damaged(at, error))
    }

    fn damaged(&self, at: u64, problem: impl std::fmt::Display) -> Error {
        Error::Damaged { at, problem: problem.to_string() }
    }
}

#[cfg(test)]
pub(crate) mod tests;
