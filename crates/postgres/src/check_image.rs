//! Proof that an image is sound: page checksums, heap and index structure. What is the same as in an image
//! that was proven before need not be looked at again: a [`Scope`] says what must be.

mod checksum;
mod pages;
mod relations;

pub use pages::{Scope, check_pages};
pub use relations::check_running;

use offshoot_types::Failure;

/// Most lines kept of what is wrong: a damaged image is damaged.
const DAMAGE_LINES_MAX: usize = 50;

/// Hears how many bytes were checked and may end the check.
pub type Tick<'a> = dyn FnMut(u64) -> Result<(), Failure> + 'a;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Damage, one line each; empty: sound.
    pub damage: Vec<String>,
    /// What could not be checked and why (no `amcheck` here, no page checksums …).
    pub unchecked: Vec<String>,
}

impl Findings {
    /// Whether nothing wrong was found.
    pub fn sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn add_damage(&mut self, line: String) {
        if self.damage.len() < DAMAGE_LINES_MAX {
            self.damage.push(line);
        }
    }
}
