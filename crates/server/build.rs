//! Has the crate built again when the console was: a directory is embedded, and Cargo watches only files.

fn main() {
    println!("cargo::rerun-if-changed=../../console/dist");
}
