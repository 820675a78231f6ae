use super::*;

fn made(sessions: &Sessions) -> Made {
    sessions.code(Bearer::Owner).unwrap()
}

#[test]
fn a_code_opens_one_session() {
    let sessions = Sessions::default();
    let code = made(&sessions);
    let session = sessions.open(code.secret.reveal()).unwrap().unwrap();
    assert!(sessions.open(code.secret.reveal()).unwrap().is_none(), "a second time");
    assert!(sessions.find(code.secret.reveal()).is_none(), "a code is no token");
    assert_eq!(sessions.find(session.secret.reveal()).unwrap().0, Bearer::Owner);
    sessions.end(session.secret.reveal());
    assert!(sessions.find(session.secret.reveal()).is_none(), "signed out");
}

#[test]
fn a_code_ends_after_ten_minutes_and_a_session_after_eight_hours() {
    let sessions = Sessions::default();
    let (early, late, now) = (made(&sessions), made(&sessions), Instant::now());
    let within = now + CODE_LIFE - Duration::from_secs(1);
    let session = sessions.open_at(early.secret.reveal(), within).unwrap().unwrap();
    let after = now + CODE_LIFE + Duration::from_secs(1);
    assert!(sessions.open_at(late.secret.reveal(), after).unwrap().is_none());
    let token = session.secret.reveal();
    assert!(sessions.open.find(token, within + SESSION_LIFE - Duration::from_secs(1)).is_some());
    assert!(sessions.open.find(token, within + SESSION_LIFE).is_none());
}

#[test]
fn memory_is_bounded_and_the_newest_are_kept() {
    let sessions = Sessions::default();
    let first = made(&sessions);
    let others: Vec<Made> = (0..CODES_MAX).map(|_| made(&sessions)).collect();
    assert!(sessions.open(first.secret.reveal()).unwrap().is_none());
    for one in others {
        assert!(sessions.open(one.secret.reveal()).unwrap().is_some());
    }
}
