use super::ObjectName;
use offshoot_types::ErrorKind;

#[test]
fn names_that_are_allowed() {
    for text in ["a", "prod", "pr-1234", "a_b-c9", &"x".repeat(63), "vdb", "vdb-1a", "job-"] {
        let name: ObjectName = text.parse().unwrap_or_else(|f| panic!("{text}: {f}"));
        assert_eq!(name.as_str(), text);
        assert_eq!(name.to_string(), text);
    }
}

#[test]
fn names_that_are_refused_say_why() {
    let long = "x".repeat(64);
    let cases = [
        ("", "empty"),
        (long.as_str(), "longer than 63"),
        ("Prod", "not allowed"),
        ("a b", "not allowed"),
        ("a/b", "not allowed"),
        ("ä", "not allowed"),
        ("a\0", "not allowed"),
        ("1a", "begin with a letter"),
        ("-a", "begin with a letter"),
        ("vdb-3", "form of an id"),
        ("snapshot-12", "form of an id"),
    ];
    for (text, why) in cases {
        let failure = text.parse::<ObjectName>().expect_err(text);
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        assert!(failure.message.contains(why), "{text}: {failure}");
        assert!(!failure.hint.is_empty());
    }
}

#[test]
fn only_the_engine_puts_names_in_a_namespace() {
    let name = |text: &str| text.parse::<ObjectName>().unwrap();
    let both = ObjectName::within(&name("west"), &name("shop")).unwrap();
    assert_eq!((both.as_str(), both.namespace()), ("west/shop", Some(name("west"))));
    assert_eq!(name("shop").namespace(), None);
    assert!("west/shop".parse::<ObjectName>().is_err(), "no user gives such a name");
    let stored = serde_json::to_string(&both).unwrap();
    assert_eq!(serde_json::from_str::<ObjectName>(&stored).unwrap(), both);
    for wrong in ["/shop", "west/", "west//shop", "../shop", "west/Shop", "a/b/c/d/e/f/g/h/i"] {
        assert!(ObjectName::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
    let far = ObjectName::within(&name("east"), &both).unwrap();
    assert_eq!(far.namespace().unwrap().as_str(), "east/west");
    assert_eq!((far.base(), far.outermost()), (name("shop"), name("east")));
    assert_eq!((name("shop").base(), name("shop").outermost()), (name("shop"), name("shop")));
}

#[test]
fn a_very_long_name_is_not_echoed_whole() {
    let failure = "x".repeat(100_000).parse::<ObjectName>().expect_err("too long");
    assert!(failure.message.len() < 200);
}
