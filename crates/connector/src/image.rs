//! Whether an image is sound.

use crate::{DataDir, Server, ServerSpec};
use offshoot_types::Failure;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Damage, one line each.
    pub damage: Vec<String>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}

impl Findings {
    /// Whether nothing is damaged.
    pub fn sound(&self) -> bool {
        self.damage.is_empty()
    }

    /// Takes over what another check found.
    pub fn extend(&mut self, other: Findings) {
        self.damage.extend(other.damage);
        self.unchecked.extend(other.unchecked);
    }
}

/// The blocks of a file that may differ from those of an image that was checked; none: all of them.
pub type Differing<'a> = dyn Fn(&str) -> io::Result<Option<Vec<Range<u64>>>> + 'a;

/// Called with bytes read since the last call; an error ends the check.
pub type Tick<'a> = dyn FnMut(u64) -> Result<(), Failure> + 'a;

/// Checks images.
pub trait ImageChecker: Send + Sync {
    /// What to check of an image. No server has been started on it.
    ///
    /// # Errors
    /// If its files cannot be compared: ask again as if everything differed.
    fn scope(
        &self,
        image: &ServerSpec,
        differing: &Differing<'_>,
    ) -> Result<Box<dyn ImageScope>, Failure>;
}

/// What to check of one image, in three parts; each runs only if the one before found nothing.
pub trait ImageScope: Send {
    /// Bytes to read, in all.
    fn bytes(&self) -> u64;

    /// Checks files before a server is started.
    ///
    /// # Errors
    /// If they cannot be read; the tick's.
    fn check_files(
        &mut self,
        files: &Arc<dyn DataDir>,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure>;

    /// Checks by a server that runs on a clone of the image, made by the same connector.
    ///
    /// # Errors
    /// If it does not answer; the tick's.
    fn check_running(
        &mut self,
        server: &dyn Server,
        deadline: Duration,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure>;

    /// Checks those files that the server has not read.
    ///
    /// # Errors
    /// As the first.
    fn check_rest(
        &mut self,
        files: &Arc<dyn DataDir>,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure>;
}
