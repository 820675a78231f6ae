use super::Stopping;
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

#[test]
fn who_rests_wakes_when_told() {
    let stopping = Stopping::default();
    assert!(!stopping.rest(Duration::from_millis(1)), "nobody told");
    let begun = SystemClock.elapsed();
    std::thread::scope(|scope| {
        let resting = scope.spawn(|| stopping.rest(Duration::from_secs(600)));
        stopping.tell();
        assert!(resting.join().expect("no panic"));
    });
    assert!(SystemClock.elapsed() - begun < Duration::from_secs(60));
    assert!(stopping.is_told() && stopping.rest(Duration::from_secs(600)));
}
