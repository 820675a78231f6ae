use super::*;

const ONE: VdbId = VdbId(1);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The decisions about a server that ends immediately, asked every second; when it was started.
fn starts(restarts: &mut Restarts, from: u64, until: u64) -> (Vec<u64>, bool) {
    let mut started = Vec::new();
    for now in from..until {
        match restarts.next(ONE, seconds(now)) {
            Restart::Now => started.push(now - from),
            Restart::Later => {}
            Restart::Never => return (started, true),
        }
    }
    (started, false)
}

#[test]
fn a_server_that_ends_at_once_is_started_five_times_with_pauses() {
    let mut restarts = Restarts::default();
    assert_eq!(starts(&mut restarts, 0, 100), (vec![0, 2, 4, 6, 8], true));
    // It was restarted by hand, and ends again.
    assert_eq!(starts(&mut restarts, 100, 200), (vec![0, 2, 4, 6, 8], true));
}

#[test]
fn one_that_ran_well_begins_anew() {
    let mut restarts = Restarts::default();
    for round in 0..20 {
        let now = seconds(round * 600);
        assert_eq!(restarts.next(ONE, now), Restart::Now);
        assert_eq!(restarts.next(VdbId(2), now), Restart::Now, "each has a count of its own");
    }
}

#[test]
fn ends_in_a_pool_without_room_do_not_count() {
    let mut restarts = Restarts::default();
    for round in 0..20 {
        let (started, given_up) = starts(&mut restarts, round * 100, round * 100 + 8);
        assert_eq!((started, given_up), (vec![0, 2, 4, 6], false));
        restarts.forget_all();
    }
}
