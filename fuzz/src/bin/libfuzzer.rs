//! libFuzzer on the target that OFFSHOOT_FUZZ_TARGET names.

#![no_main]

use offshoot_fuzz::{Target, targets};
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("OFFSHOOT_FUZZ_TARGET").expect("OFFSHOOT_FUZZ_TARGET names a target");
    targets().find(|target| target.name == name).expect("OFFSHOOT_FUZZ_TARGET is one of the list")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
