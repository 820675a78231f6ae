//! Copies a document and masks values on the way. Whatever is not masked is copied byte by byte, so that numbers keep
//! all their digits and objects their order and their repeated names.

use super::JsonMask;
use crate::algorithms::path::Step;
use crate::mask::{Outcome, Row, Unmaskable};

const BROKEN: Unmaskable = Unmaskable { why: "it is not JSON" };

/// How deep documents may be nested; also what keeps the stack small.
const DEPTH_MAX: usize = 512;

pub(super) struct Scanner<'a, 'b> {
    pub text: &'a str,
    pub at: usize,
    pub row: &'b Row<'b>,
    pub rules: &'b JsonMask,
    pub out: &'b mut String,
}

impl<'a> Scanner<'a, '_> {
    /// Copies the whole document.
    pub fn document(&mut self, steps: &mut Vec<Step>) -> Result<(), Unmaskable> {
        self.blanks();
        self.value(steps)?;
        self.blanks();
        if self.at == self.text.len() { Ok(()) } else { Err(BROKEN) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.out.push_str(&self.text[start..self.at]);
    }

    /// Takes this byte and copies it.
    fn take(&mut self, byte: u8) -> Result<(), Unmaskable> {
        if self.peek() != Some(byte) {
            return Err(BROKEN);
        }
        self.out.push(char::from(byte));
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, steps: &mut Vec<Step>) -> Result<(), Unmaskable> {
        if steps.len() > DEPTH_MAX {
            return Err(Unmaskable { why: "it is nested deeper than 512 levels" });
        }
        match self.peek() {
            Some(b'{') => self.inside(steps, b'{', b'}'),
            Some(b'[') => self.inside(steps, b'[', b']'),
            Some(b'"') => {
                let literal = self.string()?;
                self.scalar(steps, literal, true)
            }
            _ => {
                let literal = self.word();
                match literal {
                    "true" | "false" | "null" => self.word_value(steps, literal),
                    number if serde_json::from_str::<f64>(number).is_ok() || is_large(number) => {
                        self.scalar(steps, number, false)
                    }
                    _ => Err(BROKEN),
                }
            }
        }
    }

    /// An object or a list.
    fn inside(&mut self, steps: &mut Vec<Step>, open: u8, close: u8) -> Result<(), Unmaskable> {
        self.take(open)?;
        self.blanks();
        if self.peek() == Some(close) {
            return self.take(close);
        }
        for number in 0.. {
            let step = if open == b'{' {
                let literal = self.string()?;
                self.out.push_str(literal);
                self.blanks();
                self.take(b':')?;
                self.blanks();
                // A name that cannot be decoded is its own.
                Step::Member(serde_json::from_str(literal).unwrap_or_else(|_| literal.to_owned()))
            } else {
                Step::Item(number)
            };
            steps.push(step);
            self.value(steps)?;
            steps.pop();
            self.blanks();
            if self.peek() == Some(close) {
                break;
            }
            self.take(b',')?;
            self.blanks();
        }
        self.take(close)
    }

    /// Takes a text with its quotes.
    fn string(&mut self) -> Result<&'a str, Unmaskable> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(BROKEN);
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                // What is escaped may be a quote; it is never the first byte of several.
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(BROKEN),
            }
        }
        self.at += 1;
        self.text.get(start..self.at).ok_or(BROKEN)
    }

    /// Takes a number or a word.
    fn word(&mut self) -> &'a str {
        let start = self.at;
        let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        while self.peek().is_some_and(inside) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn word_value(&mut self, steps: &[Step], literal: &str) -> Result<(), Unmaskable> {
        let rule = self.rules.paths.iter().find(|rule| rule.path.leads_to(steps));
        match rule.is_some_and(|rule| rule.whatever) {
            true => self.out.push_str("null"),
            false => self.out.push_str(literal),
        }
        Ok(())
    }

    /// Masks a text or a number, or copies it.
    fn scalar(&mut self, steps: &[Step], literal: &str, text: bool) -> Result<(), Unmaskable> {
        let Some(rule) = self.rules.paths.iter().find(|rule| rule.path.leads_to(steps)) else {
            self.out.push_str(literal);
            return Ok(());
        };
        let decoded = match text {
            true => serde_json::from_str::<String>(literal).map_err(|_| BROKEN)?,
            false => literal.to_owned(),
        };
        if decoded.is_empty() {
            self.out.push_str(literal);
            return Ok(());
        }
        let mut mask = String::new();
        match rule.mask.mask(&decoded, self.row, &mut mask)? {
            Outcome::Null => self.out.push_str("null"),
            Outcome::Value if !text && serde_json::from_str::<f64>(&mask).is_ok() => {
                self.out.push_str(&mask);
            }
            Outcome::Value => {
                let literal = serde_json::to_string(&mask).map_err(|_| BROKEN)?;
                self.out.push_str(&literal);
            }
        }
        Ok(())
    }
}

/// Whether a text is a number beyond what a floating-point number holds: databases keep these.
fn is_large(text: &str) -> bool {
    let bare = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = bare.split_once(['e', 'E']).unwrap_or((bare, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    digits(whole)
        && digits(fraction)
        && digits(exponent)
        && (whole.len() == 1 || !whole.starts_with('0'))
}
