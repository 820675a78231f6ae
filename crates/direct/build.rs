//! Compiles the library that is loaded into servers. It is no crate of its own: Cargo cannot put one crate's shared
//! library into another.
#![allow(clippy::disallowed_methods, clippy::panic)] // a build script: the compiler is no child of the engine

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let library = PathBuf::from(variable("OUT_DIR")).join("liboffshoot_direct.so");
    for source in
        ["client/lib.rs", "src/layout.rs", "src/protocol.rs", "src/reading.rs", "build.rs"]
    {
        println!("cargo::rerun-if-changed={source}");
    }
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(["--crate-name", "offshoot_direct", "--crate-type", "cdylib"]);
    compiler.args(["--edition", "2024", "--target", &variable("TARGET"), "-o"]).arg(&library);
    compiler.args([
        "-C",
        "opt-level=3",
        "-C",
        "panic=abort",
        "-C",
        "strip=symbols",
        "-D",
        "warnings",
    ]);
    // Flags for the engine's own programs, as those of a sanitizer, would need what servers do not have.
    compiler.arg("client/lib.rs").env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        compiler.args(["-C", &format!("linker={linker}")]);
    }
    match compiler.status() {
        Ok(status) if status.success() => {}
        other => panic!("the library for servers does not compile: {other:?}"),
    }
}
