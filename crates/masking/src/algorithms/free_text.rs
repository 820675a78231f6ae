//! `free-text-redaction`: takes what names people out of prose.
//!
//! - Replaces e-mail addresses, IBANs (with right check digits), card numbers (valid by Luhn's formula), US social
//!   security numbers, IP addresses, telephone numbers, and `words` (whole words in any case) by what they were:
//!   `[e-mail]`, `[word]`. Parameters: `kinds`, which of them (by default all); `words`; `names: true` also takes out
//!   common first and last names; `with` replaces all of them by one text.
//! - Lossy. Texts; cut to the column's length.
//! - The output tells everything else that the text says. Prose names people in ways that no pattern finds: take
//!   `constant` or `null` where the text is not needed.

use super::{checks, names};
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::moment;
use crate::parameters::{Entry, Wrong};
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// Something to find.
struct Kind {
    name: &'static str,
    pattern: LazyLock<Option<Regex>>,
    /// Whether what the pattern finds is one.
    is_one: fn(&str) -> bool,
}

macro_rules! kind {
    ($name:literal, $pattern:literal, $is_one:expr) => {
        Kind { name: $name, pattern: LazyLock::new(|| Regex::new($pattern).ok()), is_one: $is_one }
    };
}

/// What is found, in the order that it is looked for: telephone numbers are the least certain.
static KINDS: [Kind; 6] = [
    kind!("e-mail", r"[\p{L}\p{N}._%+'-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+", |_| true),
    kind!(
        "iban",
        r"(?i)\b[a-z]{2}[0-9]{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?\b",
        checks::is_iban
    ),
    kind!("card", r"\b[0-9](?:[ -]?[0-9]){11,18}\b", checks::is_card),
    kind!("ssn", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", |_| true),
    kind!("ip", r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b", |_| true),
    kind!("phone", r"(?:\+|\b)[0-9](?:[ ./()-]{0,2}[0-9]){6,16}\b", |text| !moment::is_moment(
        text
    )),
];

pub(super) const ENTRY: Entry = Entry {
    name: "free-text-redaction",
    tells: "all other words",
    parameters: &["kinds", "words", "names", "with"],
    read: |parameters| {
        let known = KINDS.each_ref().map(|kind| kind.name);
        let chosen = parameters.choices("kinds", &known)?;
        let kinds = KINDS
            .iter()
            .filter(|kind| chosen.is_empty() || chosen.iter().any(|chosen| chosen == kind.name));
        let listed = parameters.texts("words")?.unwrap_or_default();
        let listed: Vec<String> =
            listed.iter().filter(|word| !word.is_empty()).map(|word| whole_word(word)).collect();
        let words = match listed.is_empty() {
            true => None,
            false => {
                let regex = RegexBuilder::new(&listed.join("|")).case_insensitive(true).build();
                Some(regex.map_err(|_| Wrong::new("`words` are too many", "list fewer words"))?)
            }
        };
        Ok(Arc::new(FreeText {
            kinds: kinds.collect(),
            words,
            names: parameters.flag("names")?,
            with: parameters.text("with")?,
        }))
    },
};

/// A pattern for a word, which ends where letters do; `C++` ends where it does.
fn whole_word(word: &str) -> String {
    let edge = |c: Option<char>| if c.is_some_and(char::is_alphanumeric) { r"\b" } else { "" };
    let (start, end) = (edge(word.chars().next()), edge(word.chars().next_back()));
    format!("{start}{}{end}", regex::escape(word))
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[derive(Debug, Clone)]
struct FreeText {
    kinds: Vec<&'static Kind>,
    words: Option<Regex>,
    names: bool,
    with: Option<String>,
}

impl Algorithm for FreeText {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Cut
    }

    fn bind(&self, _: &Target<'_>) -> Result<Mask, String> {
        Ok(Mask::Values(Arc::new(self.clone())))
    }
}

impl FreeText {
    /// Replaces what a pattern finds, where it is one.
    fn replace<'a>(
        &self,
        text: Cow<'a, str>,
        regex: &Regex,
        name: &str,
        is_one: impl Fn(&str) -> bool,
    ) -> Cow<'a, str> {
        if !regex.is_match(&text) {
            return text;
        }
        let replacement = self.with.clone().unwrap_or_else(|| format!("[{name}]"));
        let replaced = regex.replace_all(&text, |found: &regex::Captures<'_>| {
            if is_one(&found[0]) { replacement.clone() } else { found[0].to_owned() }
        });
        Cow::Owned(replaced.into_owned())
    }
}

impl ValueMask for FreeText {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{L}+").ok());
        const BROKEN: Unmaskable = Unmaskable { why: "a pattern of Offshoot is broken" };
        let mut text = Cow::Borrowed(value);
        for kind in &self.kinds {
            let pattern = kind.pattern.as_ref().ok_or(BROKEN)?;
            text = self.replace(text, pattern, kind.name, kind.is_one);
        }
        if let Some(words) = &self.words {
            text = self.replace(text, words, "word", |_| true);
        }
        if self.names {
            let pattern = WORD.as_ref().ok_or(BROKEN)?;
            // Names are written with a capital; `mark` and `rose` are words.
            let is_name = |word: &str| {
                let plain = word.to_lowercase();
                word.starts_with(char::is_uppercase)
                    && (names::is_first_name(&plain) || names::is_last_name(&plain))
            };
            text = self.replace(text, pattern, "name", is_name);
        }
        out.push_str(&text);
        Ok(Outcome::Value)
    }
}
