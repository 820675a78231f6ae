//! Doing something that may panic.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// What the last panic of this thread said, while it tries something.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs it; a panic is an error that says where and why, and prints nothing.
pub fn attempt<T>(what: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let trying = SAID.with_borrow_mut(|said| {
                said.as_mut().map(|said| *said = info.to_string()).is_some()
            });
            if !trying {
                usual(info);
            }
        }));
    });
    SAID.set(Some(String::new()));
    let outcome = catch_unwind(AssertUnwindSafe(what));
    let said = SAID.take().unwrap_or_default();
    outcome.map_err(|_| said)
}
