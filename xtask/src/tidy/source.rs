//! Just enough of Rust's grammar: which text is code, which lines only tests are built with.

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
