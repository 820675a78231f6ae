//! Has the crate built again when the console was: a directory is embedded, and Cargo watches only files. A debug build
//! reads that directory when it runs.

fn main() {
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let watched = if release { "../../console/dist" } else { "build.rs" };
    println!("cargo::rerun-if-changed={watched}");
}
