//! Which letters and digits a text has, and what may stand in their place.

use crate::permutation::{Digit, Permutation};
use std::sync::OnceLock;

/// What is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Letters by letters of the same script and case, digits by digits.
    All,
    /// Hexadecimal digits.
    Hex,
    /// Decimal digits of a number: leading zeros stay, and no others come.
    Number,
}

/// The characters of a text that are replaced.
pub(crate) struct Shape {
    /// Their values. A permutation of them is another text of the same form.
    pub digits: Vec<Digit>,
    sets: Vec<Set>,
}

/// Characters that stand in for one another.
#[derive(Debug, Clone, Copy)]
enum Set {
    /// Consecutive ones.
    Range { first: u32, count: u32 },
    /// Some of a block of Unicode.
    Block(&'static [char]),
}

impl Set {
    fn digit(self, c: char) -> Option<Digit> {
        match self {
            Set::Range { first, count } => {
                let value = u32::from(c).checked_sub(first).filter(|value| *value < count)?;
                Some(Digit { value, base: count })
            }
            Set::Block(chars) => {
                let value = chars.binary_search(&c).ok()?;
                Some(Digit { value: value as u32, base: chars.len() as u32 })
            }
        }
    }

    fn at(self, value: u32) -> char {
        match self {
            Set::Range { first, .. } => char::from_u32(first + value).unwrap_or('x'),
            Set::Block(chars) => chars.get(value as usize).copied().unwrap_or('x'),
        }
    }
}

impl Shape {
    /// The shape of a text, of which `keeps` says by each character's number and itself what stays.
    pub fn of(text: &str, alphabet: Alphabet, keeps: impl Fn(usize, char) -> bool) -> Shape {
        let mut shape = Shape { digits: Vec::new(), sets: Vec::new() };
        let several = text.bytes().filter(u8::is_ascii_digit).nth(1).is_some();
        for (number, c) in text.chars().enumerate() {
            let mut set = if keeps(number, c) { None } else { set_of(c, alphabet) };
            // A number of one digit may become any other; others keep their leading zeros, and no other ones come.
            if alphabet == Alphabet::Number && shape.digits.is_empty() && (several || number > 0) {
                set =
                    set.filter(|_| c != '0').and(Some(Set::Range { first: '1' as u32, count: 9 }));
            }
            if let Some((set, digit)) = set.and_then(|set| Some((set, set.digit(c)?))) {
                shape.digits.push(digit);
                shape.sets.push(set);
            } else {
                shape.sets.push(Set::Range { first: u32::from(c), count: 0 });
            }
        }
        shape
    }

    /// Appends the text of this form.
    pub fn write(&self, out: &mut String) {
        let mut digits = self.digits.iter();
        for set in &self.sets {
            match set {
                Set::Range { first, count: 0 } => out.push(char::from_u32(*first).unwrap_or('x')),
                set => out.push(set.at(digits.next().map_or(0, |digit| digit.value))),
            }
        }
    }
}

/// Appends another text of the same form: a permutation.
pub(crate) fn scramble(permutation: &Permutation, tweak: u64, text: &str, out: &mut String) {
    let mut shape = Shape::of(text, Alphabet::All, |_, _| false);
    permutation.permute(tweak, &mut shape.digits);
    shape.write(out);
}

fn set_of(c: char, alphabet: Alphabet) -> Option<Set> {
    const DIGITS: Set = Set::Range { first: '0' as u32, count: 10 };
    const HEX: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    match (alphabet, c) {
        (Alphabet::Hex, '0'..='9' | 'a'..='f') => Some(Set::Block(const { &HEX })),
        (Alphabet::Hex, _) => None,
        (_, '0'..='9') => Some(DIGITS),
        (Alphabet::Number, _) => None,
        (Alphabet::All, 'a'..='z') => Some(Set::Range { first: 'a' as u32, count: 26 }),
        (Alphabet::All, 'A'..='Z') => Some(Set::Range { first: 'A' as u32, count: 26 }),
        // Han and Hangul have no case, and their blocks of 128 would tell much.
        (Alphabet::All, '\u{4e00}'..='\u{9fff}') => {
            Some(Set::Range { first: 0x4e00, count: 0x5200 })
        }
        (Alphabet::All, '\u{ac00}'..='\u{d7a3}') => {
            Some(Set::Range { first: 0xac00, count: 11_172 })
        }
        (Alphabet::All, _) if c.is_alphanumeric() => Some(Set::Block(block_of(c))),
        (Alphabet::All, _) => None,
    }
}

/// Capitals, small letters and others of a block of Unicode. Han and Hangul have ranges of their own.
type Block = [Vec<char>; 3];

const BLOCK: u32 = 128;
const BLOCKS: usize = (char::MAX as usize + 1) / BLOCK as usize;
static KNOWN: [OnceLock<Block>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];

/// The letters or digits of the same block of 128 code points and of the same case.
fn block_of(c: char) -> &'static [char] {
    let block = u32::from(c) / BLOCK;
    let kinds = KNOWN[block as usize].get_or_init(|| {
        let mut kinds = Block::default();
        let chars = (block * BLOCK..(block + 1) * BLOCK).filter_map(char::from_u32);
        let is_own = |c: &char| {
            c.is_alphanumeric()
                && !c.is_ascii()
                && !('\u{4e00}'..='\u{9fff}').contains(c)
                && !('\u{ac00}'..='\u{d7a3}').contains(c)
        };
        chars.filter(is_own).for_each(|c| kinds[case(c)].push(c));
        if kinds.iter().any(|kind| kind.len() == 1) {
            // A letter alone of its case would stay as it is.
            let mut all = kinds.concat();
            all.sort_unstable();
            kinds = [all.clone(), all.clone(), all];
        }
        kinds
    });
    &kinds[case(c)]
}

fn case(c: char) -> usize {
    if c.is_uppercase() {
        0
    } else if c.is_lowercase() {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests;
