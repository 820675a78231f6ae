use super::{Keep, Secrets, TOLD_MAX};

const NOTHING: Keep = Keep { logins: false, foreign_servers: false };

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("r{number}")).collect()
}

#[test]
fn a_source_with_any_number_of_names_is_told_in_a_line() {
    let told = |count| Secrets { logins: names(count), ..Secrets::default() }.told(NOTHING).cut;
    assert_eq!(told(0), [] as [&str; 0]);
    assert_eq!(told(2), ["logins of roles: r0, r1"]);
    let all = format!("logins of roles: {}", names(TOLD_MAX).join(", "));
    assert_eq!(told(TOLD_MAX), std::slice::from_ref(&all));
    assert_eq!(told(TOLD_MAX + 30), [format!("{all} and 30 more")]);
}

#[test]
fn a_name_is_no_command_of_a_terminal() {
    let name = "a\u{1b}[2Jb\nc\u{9b}d".to_owned();
    let found = Secrets { slots: vec![name.clone()], warnings: vec![name], ..Secrets::default() };
    let told = found.told(NOTHING);
    let plain = "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d";
    assert_eq!(
        (told.cut, told.warnings),
        (vec![format!("replication slots: {plain}")], vec![plain.into()])
    );
}

#[test]
fn what_earlier_releases_and_later_ones_wrote_is_read() {
    let read = |text: &str| {
        serde_json::from_str::<super::Known>(text).map(|known| match known {
            super::Known::Secrets(secrets) => secrets.logins,
            super::Known::Logins(logins) => logins,
        })
    };
    for text in [
        r#"["app"]"#,
        r#"{"logins":["app"],"passwords":["app"],"foreign":[]}"#,
        r#"{"logins":["app"],"passwords":[],"foreign":[],"subscriptions":["shop.feed"]}"#,
    ] {
        assert_eq!(read(text).expect(text), ["app"]);
    }
}
