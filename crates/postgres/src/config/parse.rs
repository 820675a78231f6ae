//! The syntax of `postgresql.conf`.

use offshoot_connector::DataDir;

use super::Settings;

/// How deep includes may nest, as in the server.
const DEPTH_MAX: usize = 10;
/// Bytes that are read of all files together. Nobody's settings are that many, but a superuser of a VDB may have made
/// files of any size.
const BYTES_MAX: u64 = super::SETTINGS_BYTES_MAX;
/// How many files are read. A file that includes itself several times would be read for ever; the
/// server does not start with such a file.
const FILES_MAX: usize = 1000;

/// Settings of these files and what they include inside of the data directory, in the server's
/// order: the last one wins. What cannot be read (outside, or missing) is left out.
pub(super) fn collect(dir: &dyn DataDir, files: &[&str]) -> Settings {
    let mut collection =
        Collection { dir, files_left: FILES_MAX, bytes_left: BYTES_MAX, settings: Settings::new() };
    for file in files {
        collection.add(file, 0);
    }
    collection.settings
}

struct Collection<'a> {
    dir: &'a dyn DataDir,
    files_left: usize,
    bytes_left: u64,
    settings: Settings,
}

impl Collection<'_> {
    fn add(&mut self, path: &str, depth: usize) {
        if depth >= DEPTH_MAX || self.files_left == 0 {
            return;
        }
        self.files_left -= 1;
        let Ok(bytes) = self.dir.read_up_to(path, self.bytes_left) else { return };
        self.bytes_left -= bytes.len() as u64;
        let base = path.rsplit_once('/').map_or("", |(base, _)| base);
        for (name, value) in entries(&String::from_utf8_lossy(&bytes)) {
            match name.as_str() {
                "include" | "include_if_exists" => {
                    if let Some(path) = inside(base, &value) {
                        self.add(&path, depth + 1);
                    }
                }
                "include_dir" => {
                    let Some(folder) = inside(base, &value) else { continue };
                    let mut names = self.dir.list(&folder).unwrap_or_default();
                    names.sort();
                    for name in names.iter().filter(|name| is_included(name)) {
                        self.add(&format!("{folder}/{name}"), depth + 1);
                    }
                }
                _ => {
                    self.settings.insert(name, value);
                }
            }
        }
    }
}

fn is_included(name: &str) -> bool {
    name.ends_with(".conf") && !name.starts_with('.')
}

/// A path relative to the data directory; `None` when it leads out of it.
fn inside(base: &str, path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return None;
    }
    let parts = base.split('/').chain(path.split('/'));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty() && *part != ".").collect();
    Some(parts.join("/"))
}

/// The entries of one file in order, names in lower case; invalid lines are left out.
pub(super) fn entries(text: &str) -> Vec<(String, String)> {
    text.lines().filter_map(entry).collect()
}

fn entry(line: &str) -> Option<(String, String)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$')))?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    (!name.is_empty() && !rest.is_empty() && !rest.starts_with('#'))
        .then(|| Some((name.to_lowercase(), value(rest)?)))?
}

fn value(rest: &str) -> Option<String> {
    let Some(quoted) = rest.strip_prefix('\'') else {
        let end = rest.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(rest.len());
        return Some(rest[..end].to_owned());
    };
    let mut value = String::new();
    let mut letters = quoted.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if letters.peek() == Some(&'\'') => {
                letters.next();
                value.push('\'');
            }
            '\'' => return Some(value),
            '\\' => value.push(match letters.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            letter => value.push(letter),
        }
    }
    None
}

/// A value as written to a configuration file.
pub(super) fn quote(value: &str) -> String {
    let mut text = String::from("'");
    for letter in value.chars() {
        match letter {
            '\'' => text += "''",
            '\\' => text += "\\\\",
            '\n' => text += "\\n",
            '\r' => text += "\\r",
            letter => text.push(letter),
        }
    }
    text + "'"
}

/// Whether a text can be the name of a setting (and not of an include).
pub(super) fn is_name(text: &str) -> bool {
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.split('.').all(word) && !text.to_lowercase().starts_with("include")
}
