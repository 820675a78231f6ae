//! `email`: an address that belongs to nobody.
//!
//! - Gives `name-HASH@example.com`: a first name and 14 characters of hash. Parameters: `domain` (by default
//!   `example.com`, which RFC 2606 keeps from everybody's use); `keep: domain` keeps each value's own domain, and mail
//!   sent to it reaches that domain; `ignore-case: true` masks addresses that differ only in case alike.
//! - Distinct: 70 bits of hash. Texts.
//! - The output tells which rows had the same value; with `keep: domain` also the domain, which may name a person or a
//!   small company.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::algorithms::dictionary;
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, Wrong};
use std::sync::Arc;

/// Letters of the hash: 32, none of them like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const HASH_CHARS: usize = 14;

pub(super) const ENTRY: Entry = Entry {
    name: "email",
    tells: "with `keep: domain`, the domain",
    parameters: &["domain", "keep", "ignore-case"],
    read: |parameters| {
        let given = parameters.text("domain")?;
        let domain = given.clone().unwrap_or_else(|| "example.com".into());
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        if domain.is_empty() || domain.len() > 253 || !domain.bytes().all(allowed) {
            return Err(Wrong::new(
                format!("`domain: {domain}` is no domain"),
                "give one as in `domain: example.com`",
            ));
        }
        let keeps_domain = parameters.choice("keep", &["domain"])?.is_some();
        if keeps_domain && given.is_some() {
            let hint = "leave one of them out";
            return Err(Wrong::new("`domain` and `keep: domain` exclude each other", hint));
        }
        let ignore_case = parameters.flag("ignore-case")?;
        Ok(Arc::new(Email { domain, keeps_domain, ignore_case }))
    },
};

#[derive(Debug, Clone)]
struct Email {
    domain: String,
    keeps_domain: bool,
    ignore_case: bool,
}

impl Algorithm for Email {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Distinct
    }

    fn length(&self) -> Length {
        match self.keeps_domain {
            true => Length::Open,
            false => {
                let name = dictionary::LOCAL_PARTS.iter().map(|name| name.len()).max();
                let length = name.unwrap_or(0) + 1 + HASH_CHARS + 1 + self.domain.len();
                Length::AtMost(length as u32)
            }
        }
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let key = target.key.subkey("email");
        Ok(Mask::Values(Arc::new(EmailMask { email: self.clone(), key })))
    }
}

struct EmailMask {
    email: Email,
    key: Subkey,
}

impl ValueMask for EmailMask {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let mut draw = match self.email.ignore_case {
            true => self.key.draw(value.to_lowercase().as_bytes()),
            false => self.key.draw(value.as_bytes()),
        };
        out.push_str(draw.pick(dictionary::LOCAL_PARTS));
        out.push('-');
        let mut bits = u128::from(draw.number()) << 64 | u128::from(draw.number());
        for _ in 0..HASH_CHARS {
            out.push(char::from(LETTERS[(bits % 32) as usize]));
            bits /= 32;
        }
        out.push('@');
        let own = value.rsplit_once('@').map(|(_, domain)| domain);
        match own.filter(|domain| self.email.keeps_domain && !domain.is_empty()) {
            Some(domain) => out.push_str(domain),
            None => out.push_str(&self.email.domain),
        }
        Ok(Outcome::Value)
    }
}
