use super::*;

#[test]
fn the_object_is_in_the_path_or_in_the_body() {
    let of = |route: &str, path: &str, body: &str| {
        object_of(route, path, &Bytes::copy_from_slice(body.as_bytes()))
    };
    assert_eq!(of("/api/v1/vdbs/{name}/stop", "/api/v1/vdbs/dev/stop", ""), "dev");
    assert_eq!(of("/api/v1/vdbs", "/api/v1/vdbs", r#"{"name": "dev", "from": "prod"}"#), "dev");
    assert_eq!(of("/api/v1/snapshots", "/api/v1/snapshots", r#"{"object": "dev"}"#), "dev");
    assert_eq!(of("/api/v1/tokens", "/api/v1/tokens", r#"{"user": "eve"}"#), "eve");
    for nothing in ["", "{", "[]", r#"{"name": 3}"#] {
        assert_eq!(of("/api/v1/vdbs", "/api/v1/vdbs", nothing), "");
    }
    let long = "x".repeat(1000);
    assert_eq!(of("/v/{name}", &format!("/v/{long}"), "").len(), OBJECT_MAX);
    let acting = of("/api/v1/vdbs", "/api/v1/vdbs", r#"{"name": "a\u001b[2J"}"#);
    assert_eq!(acting, "a\u{fffd}[2J");
}
