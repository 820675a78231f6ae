use super::Group;

#[test]
fn what_is_made_from_a_member_is_named_after_both() {
    let named = Group::name_of("dev", "shop").map(|name| name.to_string());
    assert_eq!(named.as_deref(), Ok("dev-shop"));
    assert!(Group::name_of(&"d".repeat(60), "shop").is_err());
}

#[test]
fn a_name_is_no_id() {
    for text in ["group-1", "vdb-group-7"] {
        let failure = Group::parse_name(text).expect_err(text);
        assert!(failure.message.contains("form of an id"), "{failure}");
    }
    assert!(Group::parse_name("release").is_ok());
}
