//! `binary-lookup`: other bytes.
//!
//! - Gives as many bytes as the value has, drawn by its hash; `length` gives so many to every value.
//! - Distinct from 16 bytes on; shorter ones are lossy. Bytes.
//! - The output tells which rows had the same value and, without `length`, how long it was.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "binary-lookup",
    tells: "the length, without `length`",
    parameters: &["length"],
    read: |parameters| {
        let length = parameters.count("length", 0..=1 << 20)?.map(|length| length as usize);
        Ok(Arc::new(BinaryLookup { length }))
    },
};

#[derive(Debug, Clone, Copy)]
struct BinaryLookup {
    length: Option<usize>,
}

impl Algorithm for BinaryLookup {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Bytes
    }

    fn uniqueness(&self) -> Uniqueness {
        match self.length {
            Some(length) if length >= 16 => Uniqueness::Distinct,
            _ => Uniqueness::Lossy,
        }
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let key = target.key.subkey("binary-lookup");
        Ok(Mask::Values(Arc::new(Bytes { length: self.length, key })))
    }
}

struct Bytes {
    length: Option<usize>,
    key: Subkey,
}

impl ValueMask for Bytes {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let digits = value.strip_prefix("\\x").ok_or(Unmaskable { why: "it is not `\\x…`" })?;
        let mut draw = self.key.draw(digits.as_bytes());
        let mut left = self.length.unwrap_or(digits.len() / 2);
        // Values without bytes stay so.
        left = if digits.is_empty() { 0 } else { left };
        out.push_str("\\x");
        let mut block = [0; 64];
        while left > 0 {
            draw.fill(&mut block);
            let taken = left.min(block.len());
            for byte in &block[..taken] {
                for half in [byte >> 4, byte & 15] {
                    out.push(char::from(b"0123456789abcdef"[usize::from(half)]));
                }
            }
            left -= taken;
        }
        Ok(Outcome::Value)
    }
}
