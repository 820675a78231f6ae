//! The protocol in all interleavings, and with all reorderings that the memory model allows (loom).

use crate::protocol::{self, Fences, Word};
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::Arc;

struct Model;

impl Fences for Model {
    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}

impl Word for AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        AtomicU64::load(self, ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        AtomicU64::store(self, value, ordering);
    }
}

/// A frame of two words. The real one's bytes are no atomics, but machines copy them by words.
type Frame = [AtomicUsize; 2];

fn fill(frame: &Frame, value: usize) {
    frame.iter().for_each(|word| word.store(value, Ordering::Relaxed));
}

/// Reads once: the word of the entry with what was copied, if it counts.
fn read(entry: &AtomicU64, frame: &Frame) -> Option<(u64, [usize; 2])> {
    let mut copied = None;
    let counts = protocol::read::<_, Model>(entry, |word| {
        if word % 2 == 0 {
            return false;
        }
        copied = Some((word, [0, 1].map(|at: usize| frame[at].load(Ordering::Relaxed))));
        true
    });
    copied.filter(|_| counts)
}

#[test]
fn a_frame_that_is_taken_away_is_never_read_as_the_block_that_it_was() {
    loom::model(|| {
        let entry = Arc::new(AtomicU64::new(1));
        let frame: Arc<Frame> = Arc::new([AtomicUsize::new(10), AtomicUsize::new(10)]);
        let reader = {
            let (entry, frame) = (entry.clone(), frame.clone());
            loom::thread::spawn(move || read(&entry, &frame))
        };
        // Odd words lead to the frame; each word says which content is right.
        protocol::withdraw::<_, Model>(&*entry, 2);
        fill(&frame, 30);
        protocol::publish(&*entry, 3);
        if let Some((word, content)) = reader.join().unwrap() {
            assert_eq!(content, if word == 1 { [10, 10] } else { [30, 30] });
        }
    });
}

#[test]
fn what_is_read_after_an_acknowledged_change_is_the_change() {
    loom::model(|| {
        let entry = Arc::new(AtomicU64::new(1));
        let frame: Arc<Frame> = Arc::new([AtomicUsize::new(10), AtomicUsize::new(10)]);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let reader = {
            let (entry, frame) = (entry.clone(), frame.clone());
            let acknowledged = acknowledged.clone();
            loom::thread::spawn(move || {
                let before = acknowledged.load(Ordering::Acquire);
                (before, read(&entry, &frame))
            })
        };
        protocol::withdraw::<_, Model>(&*entry, 2);
        acknowledged.store(1, Ordering::Release);
        let (before, seen) = reader.join().unwrap();
        assert!(before == 0 || seen.is_none());
    });
}
