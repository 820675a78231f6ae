//! How servers share the processors.

/// What a server gets of the processors where these are short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Share {
    /// Less: nobody waits for it.
    Behind,
    /// As much as any other.
    #[default]
    Usual,
    /// More: what users will wait for depends on it.
    Ahead,
    /// Much more: a user waits for it.
    First,
}

impl Share {
    /// In percent of the usual one.
    pub fn percent(self) -> u64 {
        match self {
            Share::Behind => 25,
            Share::Usual => 100,
            Share::Ahead => 400,
            Share::First => 1600,
        }
    }
}
