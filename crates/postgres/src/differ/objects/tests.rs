use super::*;

#[test]
fn what_one_lacks_or_has_otherwise_is_told() {
    let objects = |all: &[(usize, &str, &str)]| {
        all.iter()
            .map(|(at, name, text)| ((*at, (*name).to_owned()), (*text).to_owned()))
            .collect::<Objects>()
    };
    let left = objects(&[(0, "same", "x"), (1, "gone", "y"), (1, "other", "1")]);
    let right = objects(&[(0, "same", "x"), (0, "new", "z"), (1, "other", "2")]);
    let found = changes(Some("shop"), OF_DATABASE, left, right);
    let told: Vec<_> = found
        .iter()
        .map(|one| {
            (one.kind.as_str(), one.name.as_str(), one.before.as_deref(), one.after.as_deref())
        })
        .collect();
    let (first, second) = (OF_DATABASE[0].kind, OF_DATABASE[1].kind);
    assert_eq!(
        told,
        [
            (first, "new", None, Some("z")),
            (second, "gone", Some("y"), None),
            (second, "other", Some("1"), Some("2")),
        ]
    );
}
