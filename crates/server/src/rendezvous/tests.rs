use super::*;

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_token_is_made_once_for_the_owner_alone() {
    let pool = tempfile::tempdir().unwrap();
    let first = Token::load_or_create(pool.path()).unwrap();
    let file = pool.path().join(TOKEN_FILE);
    assert_eq!(mode(&file), 0o600);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let again = Token::load_or_create(pool.path()).unwrap();
    assert_eq!(first.reveal(), again.reveal());
    assert_eq!(mode(&file), 0o600, "a loosened mode is tightened");
    assert_ne!(Token::random().reveal(), first.reveal());
}

#[test]
fn an_empty_or_short_token_is_refused() {
    let pool = tempfile::tempdir().unwrap();
    for text in ["", "\n", "short", "two words that are long enough to be one token"] {
        fs::write(pool.path().join(TOKEN_FILE), text).unwrap();
        let failure = Token::load_or_create(pool.path()).unwrap_err();
        assert_eq!(failure.code, ErrorKind::DataDamaged, "{text:?}");
    }
}

#[test]
fn only_the_whole_token_matches() {
    let token = Token::random();
    let text = token.reveal();
    assert!(token.matches(text));
    for wrong in ["", &text[..63], &format!("{text}0"), &text.to_uppercase(), &"0".repeat(64)] {
        assert!(!token.matches(wrong), "{wrong}");
    }
    assert!(!format!("{token:?}").contains(text));
}

#[test]
fn the_address_is_replaced_and_withdrawn() {
    let pool = tempfile::tempdir().unwrap();
    for port in [1, 2] {
        publish_address(pool.path(), SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    }
    let file = pool.path().join(ADDRESS_FILE);
    assert_eq!(fs::read_to_string(&file).unwrap(), "127.0.0.1:2\n");
    withdraw_address(pool.path()).unwrap();
    withdraw_address(pool.path()).unwrap();
    assert_eq!(fs::read_dir(pool.path()).unwrap().count(), 0, "nothing is left beside");
}
