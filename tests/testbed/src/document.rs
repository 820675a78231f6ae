//! What a document tells its readers to run.

use std::path::{Path, PathBuf};

/// A file of the repository.
pub fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The text of a file of the repository.
///
/// # Panics
/// When it cannot be read.
pub fn text_of(path: &str) -> String {
    std::fs::read_to_string(in_repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of code below a heading of a Markdown document, up to the next heading: those that are marked as of a
/// language, or not marked where it is empty. All of the document's where the heading is empty.
///
/// # Panics
/// When there are none: a test of nothing shows nothing.
pub fn code_blocks(document: &str, heading: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<(bool, String)> = None;
    let mut below = heading.is_empty();
    for line in text_of(document).lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(marked)) => block = Some((below && marked == language, String::new())),
            (Some(_), Some(_)) => {
                blocks.extend(block.take().filter(|(wanted, _)| *wanted).map(|(_, text)| text));
            }
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) if line.starts_with('#') && !heading.is_empty() => {
                below = line.trim_start_matches('#').trim() == heading;
            }
            (None, None) => {}
        }
    }
    assert!(!blocks.is_empty(), "{document} has no code ({language:?}) below {heading:?}");
    blocks
}
