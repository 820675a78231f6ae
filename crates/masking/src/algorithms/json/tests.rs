use crate::algorithms::path::{Path, Step};

#[test]
fn paths_lead_where_they_say() {
    let steps = [Step::Member("items".into()), Step::Item(2), Step::Member("name".into())];
    for path in
        ["$.items[*].name", "items[2].name", "$..name", "$.items", "$", "$.*", "$..*", "$['items']"]
    {
        assert!(Path::parse(path).unwrap().leads_to(&steps), "{path}");
    }
    for path in ["$.item", "$.items[1]", "$.items[*].name.first", "$..names", "$[*]"] {
        assert!(!Path::parse(path).unwrap().leads_to(&steps), "{path}");
    }
    for path in ["$x", "a..", "a[", "a[x]", "$.", ""] {
        assert_eq!(Path::parse(path), None, "{path}");
    }
}
