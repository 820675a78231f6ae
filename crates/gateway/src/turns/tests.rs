use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Spends so many turns on work that takes so long; returns how many there were at a time at most.
async fn spend(turns: &Arc<Turns>, count: usize, takes: Duration) -> usize {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut all = JoinSet::new();
    for _ in 0..count {
        let (turns, now, most) = (turns.clone(), now.clone(), most.clone());
        all.spawn(async move {
            let work = async {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                sleep(takes).await;
                now.fetch_sub(1, SeqCst);
            };
            turns.next().await.spend(work).await;
        });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
    most.load(SeqCst)
}

#[tokio::test]
async fn a_few_work_at_a_time() {
    let turns = Arc::default();
    assert_eq!(spend(&turns, 10 * TURNS_MAX, Duration::from_millis(5)).await, TURNS_MAX);
    assert_eq!(turns.0.available_permits(), TURNS_MAX);
}

#[tokio::test]
async fn what_takes_too_long_makes_way_and_is_done_all_the_same() {
    let turns = Arc::default();
    let (begun, takes) = (Instant::now(), TURN_TIMEOUT * 2);
    let slow = spend(&turns, TURNS_MAX, takes);
    let next = async {
        sleep(Duration::from_millis(20)).await;
        spend(&turns, 1, Duration::ZERO).await;
        begun.elapsed()
    };
    let (most, next) = tokio::join!(slow, next);
    assert!(most == TURNS_MAX && begun.elapsed() >= takes);
    assert!((TURN_TIMEOUT..takes).contains(&next), "{next:?}");
}
