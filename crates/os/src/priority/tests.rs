use super::*;
use std::sync::mpsc::channel;

/// The priority of the calling thread.
fn own() -> i32 {
    // SAFETY: plain system calls about the calling thread; they read no memory of ours.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, libc::gettid().cast_unsigned()) }
}

/// Whoever may not raise a priority keeps the usual one.
fn ahead() -> i32 {
    // SAFETY: a plain system call.
    if unsafe { libc::geteuid() } == 0 { AHEAD } else { USUAL }
}

#[test]
fn all_threads_go_ahead_while_one_hurries() {
    if own() != USUAL {
        return;
    }
    let ((ask, asked), (answer, answers)) = (channel::<()>(), channel());
    let other = std::thread::spawn(move || {
        for () in asked {
            answer.send(own()).unwrap();
        }
    });
    let background = std::thread::spawn(|| {
        lower_thread_priority();
        let hurry = hurry();
        let hurried = own();
        drop(hurry);
        (hurried, own())
    });
    assert_eq!(background.join().unwrap(), (NICE, NICE));
    let both = || {
        ask.send(()).unwrap();
        (own(), answers.recv().unwrap())
    };
    let first = hurry();
    let second = hurry();
    assert_eq!(both(), (ahead(), ahead()));
    drop(first);
    assert_eq!(both(), (ahead(), ahead()), "there is another one");
    let born = std::thread::spawn(own);
    assert_eq!(born.join().unwrap(), ahead());
    drop(second);
    assert_eq!(both(), (USUAL, USUAL));
    drop(ask);
    other.join().unwrap();
}

#[test]
fn time_in_line_for_a_processor_is_told() {
    let both_on_one = || {
        // SAFETY: plain system calls about the calling thread; the set is a plain value.
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().unsigned_abs() as usize, &mut one);
            libc::sched_setaffinity(0, size_of_val(&one), &one);
        }
    };
    std::thread::spawn(move || {
        both_on_one();
        // A thread inherits where it may run.
        let other = std::thread::spawn(|| while processor_wait() < Duration::from_millis(20) {});
        let before = processor_wait();
        while !other.is_finished() {}
        let waited = processor_wait() - before;
        assert!(waited >= Duration::from_millis(5), "{waited:?} beside one that works");
    })
    .join()
    .unwrap();
}
