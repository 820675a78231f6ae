//! Names with `*` and `?`.

/// A name, or a pattern of names: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<char>);

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Pattern {
        Pattern(text.chars().collect())
    }

    /// Whether it stands for one name only.
    pub fn is_exact(&self) -> bool {
        !self.0.iter().any(|c| matches!(c, '*' | '?'))
    }

    /// Whether a name is of this pattern. Takes time in proportion to the product of both lengths at most.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut in_name) = (0, 0);
        // Where to go on if what follows the last `*` does not match: that star, and what it has taken so far.
        let mut star: Option<(usize, usize)> = None;
        while in_name < name.len() {
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at, in_name));
                    at += 1;
                }
                Some(c) if *c == '?' || *c == name[in_name] => {
                    at += 1;
                    in_name += 1;
                }
                _ => {
                    let Some((star_at, taken)) = star else { return false };
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    in_name = taken + 1;
                }
            }
        }
        self.0[at..].iter().all(|c| *c == '*')
    }
}
