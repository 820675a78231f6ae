use super::*;

#[test]
fn modifiers_tell_precision_and_scale() {
    let of = |precision: i32, scale: i32| (precision << 16 | (scale & 0x7ff)) + 4;
    for (precision, scale) in [(10, 2), (5, 0), (3, -2), (1000, 1000)] {
        let wanted = TypeClass::Number {
            precision: Some(precision.try_into().unwrap()),
            scale: Some(scale),
        };
        assert_eq!(class("numeric", "N", of(precision, scale)), wanted);
    }
    assert_eq!(class("numeric", "N", -1), TypeClass::Number { precision: None, scale: None });
    assert_eq!(class("email", "S", -1), TypeClass::Text);
    assert_eq!(class("_text", "A", -1), TypeClass::Other);
}
