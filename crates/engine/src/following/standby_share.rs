//! How much of the processors the staging standby gets, where these are short.
//!
//! Mostly nobody waits for it: moments open from recovery points. So it gives way to sources, VDBs and what opens moments.
//! While a user waits for a snapshot of it, and when it is far behind, it has what each server has.

use crate::serving::Serving;
use crate::serving::servers;
use offshoot_types::Share;
use std::time::Duration;

/// So much log may wait for it: as much is kept until it is replayed.
const BEHIND_MAX: u64 = 2 << 30;
/// Pause between two looks at how far it is behind.
const LOOK: Duration = Duration::from_secs(5);

/// The share of one standby.
#[derive(Default)]
pub struct StandbyShare {
    look_at: Duration,
    is_behind: bool,
    /// What it was given last; one that was started anew has the usual share.
    given: Option<Share>,
}

impl StandbyShare {
    /// Sets that of the server with this key, where servers have control groups. `behind` tells how much log waits for it.
    pub fn look_after(
        &mut self,
        serving: &Serving,
        key: &str,
        hurried: bool,
        behind: impl FnOnce() -> u64,
    ) {
        let now = serving.clock.elapsed();
        let look = now >= self.look_at;
        if look {
            self.look_at = now + LOOK;
            self.is_behind = behind() > BEHIND_MAX;
        }
        let at_ease = !hurried && !self.is_behind;
        let wanted = if at_ease { Share::Behind } else { Share::Usual };
        if Some(wanted) == self.given && !look {
            return;
        }
        self.given = Some(wanted);
        let server = serving.servers.get(key);
        let Some(group) = server.and_then(|server| servers::group_of(&*server)) else { return };
        // Where it cannot be set, it keeps what it has.
        if group.processor_share().is_ok_and(|percent| percent != wanted.percent()) {
            let _ = group.weigh_processors(wanted.percent());
        }
    }
}
