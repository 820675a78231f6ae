//! Proof that an image is sound: page checksums, heap and index structure. What is equal to an image that
//! was proven before need not be checked again: a [`Scope`] says what must be.

mod checksum;
mod pages;
mod relations;
mod scope;

pub use pages::check_pages;
pub use relations::check_running;
pub use scope::Scope;

use offshoot_types::Failure;
use std::collections::BTreeSet;

/// Most lines kept about damage: more would not help.
const DAMAGE_LINES_MAX: usize = 50;

/// Is told how many bytes were checked, and may end the check.
pub type Tick<'a> = dyn FnMut(u64) -> Result<(), Failure> + 'a;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Damage, one line each; empty: sound.
    pub damage: Vec<String>,
    /// What could not be checked and why (no `amcheck` here, no page checksums …).
    pub unchecked: Vec<String>,
    /// Relations, by the paths of their first files, of whose main forks a server has read all pages
    /// to check. If pages have checksums, it has verified them.
    pub read: BTreeSet<String>,
}

impl Findings {
    /// Whether nothing wrong was found.
    pub fn sound(&self) -> bool {
        self.damage.is_empty()
    }

    /// Takes over what another check found.
    pub fn extend(&mut self, other: Findings) {
        other.damage.into_iter().for_each(|line| self.add_damage(line));
        self.unchecked.extend(other.unchecked);
        self.read.extend(other.read);
    }

    fn add_damage(&mut self, line: String) {
        if self.damage.len() < DAMAGE_LINES_MAX {
            self.damage.push(line);
        }
    }
}
