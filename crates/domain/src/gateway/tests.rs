use super::*;

fn change(wanted: Option<bool>, idle: Option<Option<u64>>) -> GatewayChange {
    GatewayChange { wanted, stop_when_idle_ms: idle }
}

#[test]
fn what_is_stopped_when_idle_has_a_gateway() {
    let made = change(None, Some(Some(60_000))).of(None);
    let gateway = Gateway { server_port: 0, stop_when_idle_ms: Some(60_000) };
    assert_eq!(made, Ok(Some(gateway.clone())));
    let refused = change(Some(false), None).of(Some(&gateway));
    assert_eq!(refused.map_err(|refused| refused.code), Err(ErrorKind::InvalidInput));
    assert_eq!(change(Some(false), Some(None)).of(Some(&gateway)), Ok(None));
}

#[test]
fn what_is_not_said_stays() {
    let gateway = Gateway { server_port: 6501, stop_when_idle_ms: Some(5_000) };
    assert_eq!(change(None, None).of(Some(&gateway)), Ok(Some(gateway.clone())));
    let never = change(None, Some(None)).of(Some(&gateway));
    assert_eq!(never, Ok(Some(Gateway { stop_when_idle_ms: None, ..gateway })));
    assert_eq!(change(None, None).of(None), Ok(None));
}

#[test]
fn idle_times_have_limits() {
    for ms in [0, 999, u64::MAX] {
        assert!(change(None, Some(Some(ms))).of(None).is_err(), "{ms}");
    }
}
