use super::*;

#[test]
fn each_subject_has_a_stored_text_of_its_own() {
    let names = ["prod", "pool", "engine", "name:prod", "name:pool", "snapshot-x"];
    let named = names.map(Subject::named);
    let mut all = vec![Subject::Pool, Subject::Engine, Subject::Snapshot(SnapshotId(7))];
    all.extend(named);
    let texts: Vec<String> = all.iter().map(|one| one.stored().into_owned()).collect();
    for (subject, text) in all.iter().zip(&texts) {
        assert_eq!(Subject::of_stored(text), *subject, "{text}");
        assert_eq!(texts.iter().filter(|other| *other == text).count(), 1, "{text}");
    }
}

#[test]
fn texts_of_earlier_releases_mean_what_they_meant() {
    assert_eq!(Subject::of_stored("prod"), Subject::named("prod"));
    assert_eq!(Subject::of_stored("pool"), Subject::Pool);
    assert_eq!(Subject::of_stored("engine"), Subject::Engine);
    assert_eq!(Subject::of_stored("snapshot-12"), Subject::Snapshot(SnapshotId(12)));
    for text in ["prod", "pool", "engine", "snapshot-12"] {
        assert_eq!(Subject::of_stored(text).stored(), text);
        assert_eq!(Subject::of_stored(text).to_string(), text);
    }
}

#[test]
fn people_see_the_name() {
    assert_eq!(Subject::named("pool").to_string(), "pool");
    assert_eq!(serde_json::to_string(&Subject::named("pool")).unwrap(), "\"name:pool\"");
}
