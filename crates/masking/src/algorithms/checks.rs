//! Check digits.

/// The digit that makes a row of digits valid by Luhn's formula (ISO/IEC 7812-1, annex B).
pub(crate) fn luhn(digits: impl DoubleEndedIterator<Item = u32>) -> u32 {
    let sum: u32 = digits
        .rev()
        .enumerate()
        .map(|(from_end, digit)| match from_end % 2 {
            0 => digit * 2 / 10 + digit * 2 % 10,
            _ => digit,
        })
        .sum();
    (10 - sum % 10) % 10
}

/// Whether a text has from 12 to 19 digits, valid by Luhn's formula.
pub(crate) fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    match digits.split_last() {
        Some((check, body)) if (12..=19).contains(&digits.len()) => {
            luhn(body.iter().copied()) == *check
        }
        _ => false,
    }
}

/// What is left of the number that letters and digits stand for (`A` is 10), divided by 97.
pub(crate) fn remainder_97(chars: impl Iterator<Item = char>) -> u32 {
    chars.filter_map(|c| c.to_digit(36)).fold(0, |left, value| match value {
        0..10 => (left * 10 + value) % 97,
        _ => (left * 100 + value) % 97,
    })
}

/// Letters and digits of an IBAN in the order that its check digits are computed in (ISO 13616): the country and the
/// check digits come last. None if a text has not the form of one.
pub(crate) fn iban_parts(text: &str) -> Option<Vec<char>> {
    let chars: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    let form = (15..=34).contains(&chars.len())
        && chars[..2].iter().all(char::is_ascii_alphabetic)
        && chars[2..4].iter().all(char::is_ascii_digit)
        && chars.iter().all(char::is_ascii_alphanumeric);
    form.then(|| [&chars[4..], &chars[..4]].concat())
}

/// Whether a text is an IBAN with right check digits.
pub(crate) fn is_iban(text: &str) -> bool {
    iban_parts(text).is_some_and(|chars| remainder_97(chars.into_iter()) == 1)
}
