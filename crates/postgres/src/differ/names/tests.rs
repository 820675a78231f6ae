use super::*;

#[test]
fn patterns_fit_what_they_say() {
    for (pattern, name) in [
        ("orders", "orders"),
        ("ord*", "orders"),
        ("*", ""),
        ("*rs", "orders"),
        ("o?d*s", "orders"),
        ("public.*", "public.orders"),
        ("*a*b*", "xxaxxbxx"),
        ("**", "x"),
    ] {
        assert!(fits(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in
        [("orders", "order"), ("ord", "orders"), ("?", ""), ("*a", "ab"), ("", "x"), ("o?", "o")]
    {
        assert!(!fits(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn tables_are_named_with_as_much_as_is_needed() {
    let patterns = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    for fitting in ["orders", "public.orders", "shop.public.orders", "shop.*", "pub*.ord*"] {
        let patterns = patterns(&["nothing", fitting]);
        assert!(Wanted(&patterns).table("shop", "public", "orders"), "{fitting}");
    }
    assert!(Wanted(&[]).table("shop", "public", "orders"));
    assert!(!Wanted(&patterns(&["other.orders"])).table("shop", "public", "orders"));
}
