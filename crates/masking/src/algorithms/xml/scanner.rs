//! Copies a document and masks texts and attributes on the way. It checks only what it needs to know where it is: the
//! database has checked the rest.

use super::XmlMask;
use crate::algorithms::path::Step;
use crate::mask::{Outcome, Row, Unmaskable};

const BROKEN: Unmaskable = Unmaskable { why: "it is not XML" };

/// How deep documents may be nested: paths are compared at every level.
const DEPTH_MAX: usize = 512;

pub(super) struct Scanner<'a, 'b> {
    /// What is still to be copied.
    pub rest: &'a str,
    /// The elements it is in.
    pub steps: Vec<Step>,
    pub row: &'b Row<'b>,
    pub rules: &'b XmlMask,
    pub out: &'b mut String,
}

impl<'a> Scanner<'a, '_> {
    pub fn document(&mut self) -> Result<(), Unmaskable> {
        while !self.rest.is_empty() {
            if self.rest.starts_with("<!--") {
                self.until("-->")?;
            } else if let Some(inside) = self.rest.strip_prefix("<![CDATA[") {
                self.rest = inside;
                let whole = self.until("]]>")?;
                let text = whole.strip_suffix("]]>").unwrap_or(whole);
                if !self.masked(text, text)? {
                    self.push_all(&["<![CDATA[", whole]);
                }
            } else if self.rest.starts_with("<?") {
                let whole = self.until("?>")?;
                if whole.starts_with("<?xml") {
                    self.out.push_str(whole);
                }
            } else if self.rest.starts_with("<!") {
                self.declaration()?;
            } else if self.rest.starts_with("</") {
                let whole = self.until(">")?;
                self.steps.pop().ok_or(BROKEN)?;
                self.out.push_str(whole);
            } else if self.rest.starts_with('<') {
                self.element()?;
            } else {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let text = self.take(end);
                self.text(text)?;
            }
        }
        if self.steps.is_empty() { Ok(()) } else { Err(BROKEN) }
    }

    fn push_all(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.out.push_str(text));
    }

    /// Takes so many bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Copies so many bytes.
    fn copy(&mut self, length: usize) {
        let copied = self.take(length);
        self.out.push_str(copied);
    }

    /// Takes everything up to a mark and the mark.
    fn until(&mut self, mark: &str) -> Result<&'a str, Unmaskable> {
        let at = self.rest.find(mark).ok_or(BROKEN)?;
        Ok(self.take(at + mark.len()))
    }

    /// A document type. One that declares entities might hold what is to be masked.
    fn declaration(&mut self) -> Result<(), Unmaskable> {
        let whole = self.until(">")?;
        if whole.contains('[') {
            return Err(Unmaskable { why: "its document type declares something" });
        }
        self.out.push_str(whole);
        Ok(())
    }

    fn element(&mut self) -> Result<(), Unmaskable> {
        self.copy(1);
        let name = self.name()?;
        self.out.push_str(name);
        if self.steps.len() >= DEPTH_MAX {
            return Err(Unmaskable { why: "it is nested deeper than 512 levels" });
        }
        self.steps.push(Step::Member(local(name).to_owned()));
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.copy(blanks);
            if self.rest.starts_with("/>") {
                self.steps.pop();
                self.copy(2);
                return Ok(());
            }
            if self.rest.starts_with('>') {
                self.copy(1);
                return Ok(());
            }
            self.attribute()?;
        }
    }

    fn attribute(&mut self) -> Result<(), Unmaskable> {
        let name = self.name()?;
        self.out.push_str(name);
        let quote_at = self.rest.find(['"', '\'']).ok_or(BROKEN)?;
        let equals = self.take(quote_at);
        if equals.trim() != "=" {
            return Err(BROKEN);
        }
        let quote = self.take(1);
        let whole = self.until(quote)?;
        self.push_all(&[equals, quote]);
        let value = whole.strip_suffix(quote).unwrap_or(whole);
        // What names namespaces is no data.
        let names = name == "xmlns" || name.starts_with("xmlns:");
        self.steps.push(Step::Member(format!("@{}", local(name))));
        if names || !self.masked(&decoded(value)?, value)? {
            self.out.push_str(value);
        }
        self.steps.pop();
        self.out.push_str(quote);
        Ok(())
    }

    /// Takes a name.
    fn name(&mut self) -> Result<&'a str, Unmaskable> {
        let ends = |c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/' | '<' | '"' | '\'');
        let end = self.rest.find(ends).filter(|end| *end > 0).ok_or(BROKEN)?;
        Ok(self.take(end))
    }

    /// A text between tags; blanks at its ends stay.
    fn text(&mut self, text: &str) -> Result<(), Unmaskable> {
        let bare = text.trim();
        let start = text.len() - text.trim_start().len();
        self.out.push_str(&text[..start]);
        if bare.is_empty() || self.rules.rule(&self.steps).is_none() {
            self.out.push_str(bare);
        } else {
            self.masked(&decoded(bare)?, bare)?;
        }
        self.out.push_str(&text[start + bare.len()..]);
        Ok(())
    }

    /// Appends the mask of a text; false, and nothing is appended, if no rule is for it.
    fn masked(&mut self, text: &str, written: &str) -> Result<bool, Unmaskable> {
        let Some(rule) = self.rules.rule(&self.steps).filter(|_| !written.is_empty()) else {
            return Ok(false);
        };
        let mut mask = String::new();
        if rule.mask(text, self.row, &mut mask)? == Outcome::Value {
            for c in mask.chars() {
                match c {
                    '<' => self.out.push_str("&lt;"),
                    '>' => self.out.push_str("&gt;"),
                    '&' => self.out.push_str("&amp;"),
                    '"' => self.out.push_str("&quot;"),
                    '\'' => self.out.push_str("&apos;"),
                    c => self.out.push(c),
                }
            }
        }
        Ok(true)
    }
}

/// A name without its namespace's prefix.
fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// A text without references to characters.
fn decoded(text: &str) -> Result<String, Unmaskable> {
    let mut parts = text.split('&');
    let mut decoded = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (name, after) = part.split_once(';').ok_or(BROKEN)?;
        let number = match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(digits), _) => u32::from_str_radix(digits, 16).ok(),
            (None, Some(digits)) => digits.parse().ok(),
            (None, None) => None,
        };
        decoded.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => number.and_then(char::from_u32).ok_or(BROKEN)?,
        });
        decoded.push_str(after);
    }
    Ok(decoded)
}
