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
