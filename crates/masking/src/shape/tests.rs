use super::*;
use crate::MaskingKey;

#[test]
fn a_text_is_written_as_it_was_read() {
    for text in
        ["", "Müller-Lüdenscheidt 12b", "東京 한국 Ωμέγα ﬁ ½ ١٢٣", "e\u{301}\u{0}\u{202e}", "🦀 x"]
    {
        for alphabet in [Alphabet::All, Alphabet::Hex, Alphabet::Number] {
            let mut out = String::new();
            Shape::of(text, alphabet, |_, _| false).write(&mut out);
            assert_eq!(out, text);
        }
    }
}

#[test]
fn every_letter_may_become_another_of_its_case() {
    let permutation = Permutation::new(MaskingKey::new(b"secret").subkey("test"));
    let mut alone = 0;
    for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| c.is_alphanumeric()) {
        let set = set_of(c, Alphabet::All).expect("letters are replaced");
        let digit = set.digit(c).expect("it is of its own set");
        assert_eq!(set.at(digit.value), c);
        alone += u32::from(digit.base == 1);
    }
    assert!(alone < 30, "{alone} letters stay as they are");
    let mut out = String::new();
    scramble(&permutation, 0, "Ärger 42 ÖL ωμέγα", &mut out);
    let kinds = |text: &str| text.chars().map(|c| (c.is_uppercase(), c == ' ')).collect::<Vec<_>>();
    assert_eq!(kinds(&out), kinds("Ärger 42 ÖL ωμέγα"));
}
