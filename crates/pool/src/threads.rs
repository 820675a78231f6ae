//! Work on the whole table at open, shared among threads.

use std::num::NonZeroUsize;

/// More threads than this wait for memory, not for processors.
const THREADS_MAX: usize = 8;

/// Threads for work that is so many times the least that one thread should have.
pub(crate) fn threads_for(shares: u64) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    (shares as usize).clamp(1, processors.min(THREADS_MAX))
}

/// Does `work` for each of so many shares, the first on the calling thread.
pub(crate) fn in_parallel<T: Send>(shares: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |share| std::thread::Builder::new().spawn_scoped(scope, move || work(share));
        let others: Vec<_> = (1..shares).map(|share| (share, start(share))).collect();
        let mut results = vec![work(0)];
        for (share, other) in others {
            results.push(match other {
                Ok(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The system has no more threads.
                Err(_) => work(share),
            });
        }
        results
    })
}
