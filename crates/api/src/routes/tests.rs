use super::*;

#[test]
fn fills_the_parameter_and_escapes_what_would_leave_its_segment() {
    assert_eq!(fill(VDB_START, "dev-1"), "/api/v1/vdbs/dev-1/start");
    assert_eq!(fill(VDB, "../jobs?a=b#c%"), "/api/v1/vdbs/%2E%2E%2Fjobs%3Fa%3Db%23c%25");
    assert_eq!(fill(JOB, "ä"), "/api/v1/jobs/%C3%A4");
    assert_eq!(fill(STATUS, "ignored"), STATUS);
}
