//! The paths that a file writes, and what they name.

use crate::tidy::source;
use std::collections::{BTreeMap, BTreeSet};

/// Re-exports that are followed before a path is given up.
const STEPS_MAX: usize = 16;

/// A path, by its parts.
pub type Path = Vec<String>;

/// A file as a module of its crate.
pub struct Module {
    pub file: String,
    path: Path,
    /// By the name they have here: what `use` brings in.
    imports: BTreeMap<String, Path>,
    /// What `use …::*` opens.
    opened: Vec<Path>,
    /// The names of items with a definition here.
    defined: BTreeSet<String>,
    /// Every path with more than one part, as written, and its line.
    pub used: Vec<(usize, Path)>,
}

impl Module {
    /// Reads a file; what only tests are built with is left out.
    pub fn read(file: &str, path: Path, text: &str) -> Module {
        let code = source::code_only(text);
        let tests = source::test_lines(&code);
        let mut tokens = Vec::new();
        for (line, text) in code.lines().enumerate() {
            if !tests.iter().any(|range| range.contains(&(line + 1))) {
                split(text, line + 1, &mut tokens);
            }
        }
        let mut module = Module {
            file: file.to_owned(),
            path,
            imports: BTreeMap::new(),
            opened: Vec::new(),
            defined: BTreeSet::new(),
            used: Vec::new(),
        };
        module.read_tokens(&tokens);
        module
    }

    fn read_tokens(&mut self, tokens: &[Token]) {
        let mut at = 0;
        while at < tokens.len() {
            let word = tokens[at].text;
            if word == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<") {
                at = self.read_import(tokens, at + 1, &mut Path::new());
                continue;
            }
            if matches!(
                word,
                "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "fn"
            ) && let Some(name) = tokens.get(at + 1)
            {
                self.defined.insert(name.text.to_owned());
            }
            let (end, path) = path_at(tokens, at);
            if path.len() > 1 {
                self.used.push((tokens[at].line, path));
            }
            at = end.max(at + 1);
        }
    }

    /// Reads a tree of imports below `above`; says where it ends.
    fn read_import(&mut self, tokens: &[Token], start: usize, above: &mut Path) -> usize {
        let depth = above.len();
        let mut at = start;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token.text {
                "::" => {}
                "{" => {
                    while tokens.get(at).is_some_and(|next| next.text != "}") {
                        at = self.read_import(tokens, at, above);
                        at += usize::from(tokens.get(at).is_some_and(|next| next.text == ","));
                    }
                    at += 1;
                }
                "*" => {
                    self.used.push((token.line, [&above[..], &["*".to_owned()]].concat()));
                    self.opened.push(above.clone());
                }
                "," | "}" | ";" => {
                    at -= 1;
                    break;
                }
                name => {
                    if name != "self" || above.is_empty() {
                        above.push(name.to_owned());
                    }
                    let next = tokens.get(at).map_or(";", |next| next.text);
                    if next == "as" {
                        let name = tokens.get(at + 1).map_or("_", |alias| alias.text);
                        self.import(token.line, name, above);
                        at += 2;
                    } else if next != "::" {
                        let name = above.last().cloned().unwrap_or_default();
                        self.import(token.line, &name, above);
                    }
                }
            }
        }
        above.truncate(depth);
        at
    }

    fn import(&mut self, line: usize, name: &str, path: &Path) {
        self.used.push((line, path.clone()));
        self.imports.insert(name.to_owned(), path.clone());
    }
}

type Modules = BTreeMap<Path, Module>;

/// The file of the crate that defines what `path`, written in `module`, names; none for what comes from
/// elsewhere, and for a module itself: only what is taken out of it is used.
pub fn file_of(modules: &Modules, module: &Module, path: &[String]) -> Option<String> {
    resolve(modules, module, path, STEPS_MAX).map(|found| found.file.clone())
}

fn resolve<'a>(
    modules: &'a Modules,
    module: &'a Module,
    path: &[String],
    steps: usize,
) -> Option<&'a Module> {
    let (mut here, mut rest) = match path.first()?.as_str() {
        "crate" => (modules.get(&Path::new())?, &path[1..]),
        "self" => (module, &path[1..]),
        "super" => (above(modules, module)?, &path[1..]),
        first => (module, if knows(modules, module, first) { path } else { return None }),
    };
    loop {
        let (name, below) = rest.split_first()?;
        if name == "super" {
            (here, rest) = (above(modules, here)?, below);
        } else if let Some(child) =
            modules.get(&[&here.path[..], std::slice::from_ref(name)].concat())
        {
            (here, rest) = (child, below);
        } else {
            return find(modules, here, name, below, steps);
        }
    }
}

/// Whether a path that begins with `name` in `module` may lead into the crate.
fn knows(modules: &Modules, module: &Module, name: &str) -> bool {
    module.imports.contains_key(name)
        || modules.contains_key(&[&module.path[..], &[name.to_owned()]].concat())
}

fn above<'a>(modules: &'a Modules, module: &Module) -> Option<&'a Module> {
    let (_, above) = module.path.split_last()?;
    modules.get(above)
}

/// Where `name` of the module `here` is defined: there, or where its imports lead.
fn find<'a>(
    modules: &'a Modules,
    here: &'a Module,
    name: &str,
    below: &[String],
    steps: usize,
) -> Option<&'a Module> {
    if here.defined.contains(name) || steps == 0 {
        return Some(here);
    }
    if let Some(import) = here.imports.get(name) {
        // `use tracing;` and the like name themselves.
        let itself = import.len() == 1 && import[0] == name;
        let full = [&import[..], below].concat();
        return if itself { None } else { resolve(modules, here, &full, steps - 1) };
    }
    let opened = here.opened.iter().find_map(|glob| {
        let full = [&glob[..], &[name.to_owned()], below].concat();
        let found = resolve(modules, here, &full, steps - 1)?;
        found.defined.contains(name).then_some(found)
    });
    Some(opened.unwrap_or(here))
}

struct Token<'a> {
    line: usize,
    text: &'a str,
}

/// The words of a line, `::`, `..`, and single characters.
fn split<'a>(text: &'a str, line: usize, into: &mut Vec<Token<'a>>) {
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            text[at..].find(|c| !is_word(c)).unwrap_or(text.len() - at)
        } else if text[at..].starts_with("::") || text[at..].starts_with("..") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            into.push(Token { line, text: &text[at..at + length] });
        }
        at += length;
    }
}

/// The path that begins at a token, and where it ends.
fn path_at(tokens: &[Token], start: usize) -> (usize, Path) {
    let is_name = |at: usize| {
        let first = tokens.get(at).and_then(|token| token.text.chars().next());
        first.is_some_and(|c| c.is_alphabetic() || c == '_')
    };
    let mut path = Path::new();
    let mut at = start;
    // What follows `::` or `.` is not a beginning.
    let follows = start > 0 && matches!(tokens[start - 1].text, "::" | ".");
    while !follows && is_name(at) {
        path.push(tokens[at].text.to_owned());
        at += 1;
        if tokens.get(at).is_none_or(|token| token.text != "::") || !is_name(at + 1) {
            break;
        }
        at += 1;
    }
    (at, path)
}
