//! What takes room in the pool, and how much there is: the ledger, a pool that fills up, damage, losses.

pub mod damage;
pub mod inventory;
pub mod ledger;
pub mod losses;
pub mod room;
pub mod shares;

use crate::core::Core;
use std::ops::Deref;
use std::sync::Arc;

/// What is known about the room in the pool, on top of the core.
pub struct Space {
    core: Arc<Core>,
    pub room: room::Seen,
    pub exhausted: shares::Exhausted,
    pub ledger: ledger::Ledger,
    pub damage: damage::Damage,
}

impl Space {
    /// Nothing is known yet.
    pub fn new(core: Arc<Core>) -> Space {
        Space {
            core,
            room: Default::default(),
            exhausted: Default::default(),
            ledger: Default::default(),
            damage: Default::default(),
        }
    }
}

impl Deref for Space {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}
