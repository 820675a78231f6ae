//! Names of tables, and patterns for them.

/// Whether a name fits a pattern, in which `*` stands for any letters and `?` for one.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on if what follows the last star does not fit.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(letter) if *letter == '?' || Some(letter) == name.get(n) => {
                (p, n) = (p + 1, n + 1)
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|letter| *letter == '*')
}

/// Which tables are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a>(pub(super) &'a [String]);

impl Wanted<'_> {
    /// Whether all are.
    pub(super) fn all(self) -> bool {
        self.0.is_empty()
    }

    /// Whether a table is: a pattern may name it alone, with its schema, or with its database too.
    pub(super) fn table(self, database: &str, schema: &str, table: &str) -> bool {
        let names =
            [table.to_owned(), format!("{schema}.{table}"), format!("{database}.{schema}.{table}")];
        self.all() || self.0.iter().any(|one| names.iter().any(|name| fits(one, name)))
    }
}

#[cfg(test)]
mod tests;
