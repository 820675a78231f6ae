use super::*;

fn response(fields: &[(char, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, text) in fields {
        body.extend(format!("{kind}{text}\0").into_bytes());
    }
    body.push(0);
    body
}

#[test]
fn a_refusal_names_the_place_and_no_value() {
    let words = "invalid input syntax for type integer: \"Anna\"";
    let context = "COPY t1, line 12, column name: \"Anna\"";
    let refused = Refusal::of(&response(&[('C', "22P02"), ('M', words), ('W', context)]));
    assert_eq!(refused.line, Some(12));
    assert_eq!(refused.column_of(["na", "name", "other"].into_iter()), Some("name"));
    let failure = refused.into_failure("public.people");
    assert_eq!(failure.code, ErrorKind::InvalidInput);
    assert!(failure.message.starts_with("public.people: "), "{}", failure.message);
    assert!(!failure.message.contains("Anna"), "{}", failure.message);
    let refused = Refusal::of(&response(&[('C', "23505"), ('n', "people_name")]));
    assert_eq!((refused.line, refused.is_of_uniqueness()), (None, true));
    assert!(refused.said().contains("people_name"));
    assert_eq!(Refusal::of(b"C2250").said(), "");
}
