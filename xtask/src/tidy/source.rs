//! Just enough of Rust's grammar: which text is code, which function spans which lines.

/// A function and the lines it spans, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of the `fn` keyword.
    pub first_line: usize,
    /// The line of the closing brace.
    pub last_line: usize,
}

/// The text with comments and the content of literals replaced by spaces, line for line the same.
pub fn code_only(text: &str) -> String {
    let mut scanner =
        Scanner { rest: text.chars().collect(), at: 0, out: String::with_capacity(text.len()) };
    while scanner.at < scanner.rest.len() {
        scanner.step();
    }
    scanner.out
}

struct Scanner {
    rest: Vec<char>,
    at: usize,
    out: String,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> char {
        self.rest.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn keep(&mut self) {
        let c = self.peek(0);
        self.out.push(c);
        self.at += 1;
    }

    fn blank(&mut self) {
        let c = self.peek(0);
        self.out.push(if c == '\n' { '\n' } else { ' ' });
        self.at += 1;
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => {
                while self.at < self.rest.len() && self.peek(0) != '\n' {
                    self.blank();
                }
            }
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('r', '"' | '#') if !self.inside_word() && self.raw_hashes(1).is_some() => {
                self.raw_string(1);
            }
            ('b', 'r') if !self.inside_word() && self.raw_hashes(2).is_some() => self.raw_string(2),
            ('\'', _) => self.quote(),
            _ => self.keep(),
        }
    }

    fn inside_word(&self) -> bool {
        self.out.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.rest.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => {
                    depth += 1;
                    self.blank();
                }
                ('*', '/') => {
                    depth -= 1;
                    self.blank();
                }
                _ => {}
            }
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.keep();
        while self.at < self.rest.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                self.blank();
            }
            self.blank();
        }
        if self.at < self.rest.len() {
            self.keep();
        }
    }

    /// How many hashes open the raw string whose `r` ends `skip` characters from here.
    fn raw_hashes(&self, skip: usize) -> Option<usize> {
        let hashes = (0..).take_while(|i| self.peek(skip + i) == '#').count();
        (self.peek(skip + hashes) == '"').then_some(hashes)
    }

    fn raw_string(&mut self, skip: usize) {
        let hashes = self.raw_hashes(skip).unwrap_or(0);
        for _ in 0..skip + hashes + 1 {
            self.keep();
        }
        while self.at < self.rest.len() {
            let closes = self.peek(0) == '"' && (1..=hashes).all(|i| self.peek(i) == '#');
            if closes {
                for _ in 0..=hashes {
                    self.keep();
                }
                return;
            }
            self.blank();
        }
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        let literal = self.peek(1) == '\\' || self.peek(2) == '\'';
        self.keep();
        if !literal {
            return;
        }
        if self.peek(0) == '\\' {
            self.blank();
        }
        self.blank();
        while self.at < self.rest.len() && self.peek(0) != '\'' {
            self.blank();
        }
        if self.at < self.rest.len() {
            self.keep();
        }
    }
}

/// The functions with a body in `code`, which comes from [`code_only`].
pub fn functions(code: &str) -> Vec<Function> {
    let lines = LineIndex::new(code);
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word = at == 0 || !is_word(bytes[at - 1]);
        let name: String =
            code[at + 3..].trim_start().chars().take_while(|c| is_word_char(*c)).collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        // The body opens at the first brace outside brackets; a semicolon there means no body.
        let mut depth = 0i32;
        for (offset, byte) in bytes[at..].iter().enumerate() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b';' if depth == 0 => break,
                b'{' if depth == 0 => {
                    let end = closing_brace(bytes, at + offset);
                    found.push(Function {
                        name,
                        first_line: lines.line(at),
                        last_line: lines.line(end),
                    });
                    break;
                }
                _ => {}
            }
        }
    }
    found
}

/// The lines, from 1, of items that only tests are built with: `#[cfg(test)]` with a body.
pub fn test_lines(code: &str) -> Vec<std::ops::RangeInclusive<usize>> {
    let lines = LineIndex::new(code);
    let bytes = code.as_bytes();
    code.match_indices("#[cfg(test)]")
        .filter_map(|(at, _)| {
            let open = bytes[at..].iter().position(|b| matches!(b, b'{' | b';'))? + at;
            let end = if bytes[open] == b'{' { closing_brace(bytes, open) } else { open };
            Some(lines.line(at)..=lines.line(end))
        })
        .collect()
}

fn closing_brace(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in bytes[open..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + offset;
        }
    }
    bytes.len() - 1
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        LineIndex { starts: std::iter::once(0).chain(newlines).collect() }
    }

    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }
}

#[cfg(test)]
mod tests;
