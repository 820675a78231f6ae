use super::*;

#[test]
fn requests_are_told_apart_by_direction_and_size() {
    let mut requests = Requests::default();
    for line in [
        "  fio-12 [001] ..... 5.125: block_rq_issue: 7,0 WS 8192 () 1234 + 16 be,0,4 [fio]",
        "  fio-12 [001] ..... 5.126: block_rq_issue: 7,0 W 8192 () 2234 + 16 be,0,4 [fio]",
        "  fio-12 [000] ..... 5.127: block_rq_issue: 7,0 RA 131072 () 0 + 256 none,0,0 [fio]",
        "  fio-12 [000] ..... 5.128: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [fio]",
        "  fio-12 [000] ..... 5.129: block_rq_issue: 7,0 DS 65536 () 0 + 128 none,0,0 [fio]",
        "CPU:1 [LOST 12 EVENTS]",
    ] {
        requests.add(line);
    }
    assert_eq!(requests.writes, Sizes::from([(8_192, 2)]));
    assert_eq!(requests.reads, Sizes::from([(131_072, 1)]));
}
