use super::*;
use crate::archive::tests::Side;
use crate::wire::Want;
use offshoot_dataset::{DatasetId, Ino, NewInode, SnapshotId};
use offshoot_types::ErrorKind as Kind;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PAUSE_MS: u64 = 20;

/// A connection that is cut after so many bytes.
struct Pipe {
    stream: UnixStream,
    cut_after: u64,
    sent: u64,
    received: u64,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.received += count as u64;
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.sent > self.cut_after {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = self.stream.write(bytes)?;
        self.sent += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl Wire for Pipe {
    fn pause_ms(&self) -> u64 {
        PAUSE_MS
    }

    fn sent_bytes(&self) -> u64 {
        self.sent
    }

    fn received_bytes(&self) -> u64 {
        self.received
    }
}

fn pipes(cut_after: u64) -> (Talk, Talk) {
    let (one, other) = UnixStream::pair().unwrap();
    let talk = |stream: UnixStream, cut_after| {
        stream.set_read_timeout(Some(Duration::from_millis(PAUSE_MS))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(PAUSE_MS))).unwrap();
        Talk::new(Box::new(Pipe { stream, cut_after, sent: 0, received: 0 }))
    };
    (talk(one, cut_after), talk(other, u64::MAX))
}

fn giver(side: &Side, snapshot: SnapshotId) -> Giver {
    Giver::new(vec![side.store.hold_snapshot(snapshot).unwrap()])
}

/// The next thing that the other end says, in time.
fn hear(talk: &mut Talk) -> Result<Message> {
    talk.hear(&mut || Ok(()))
}

/// A dataset with more than what is collected before it is written, which does not compress.
fn noisy(side: &Side) -> DatasetId {
    let id = side.dataset(3);
    let dataset = side.store.dataset(id).unwrap();
    let long = dataset.create(Ino::ROOT, b"long", &NewInode::file(0o600)).unwrap().ino;
    let mut noise = 7u64;
    for page in 0..200 {
        let content: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (noise >> 33) as u8
        })
        .take(8192)
        .collect();
        dataset.write(long, page * 8192, &content).unwrap();
    }
    id
}

#[test]
fn what_is_cut_goes_on_and_comes_whole() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let id = noisy(&source);
    let snapshot = source.store.snapshot(id).unwrap();
    let intake = target.store.begin_intake().unwrap();
    let mut sent = Vec::new();
    for cut in [400_000, 300_000, u64::MAX] {
        let (mut here, mut there) = pipes(cut);
        let held = giver(&source, snapshot);
        let intake = target.store.intake(intake).unwrap();
        let (given, pulled) = std::thread::scope(|scope| {
            let giving = scope.spawn(|| {
                let given = here.give(b"what it is", &held, &mut |_| Ok(()));
                sent.push(here.wire().sent_bytes());
                drop(here);
                given
            });
            let (manifest, states) = there.offered(&mut || Ok(())).unwrap();
            assert_eq!(manifest, b"what it is");
            let becomes = vec![Becomes::Snapshot; states.len()];
            let pulled = there.pull(&intake, &states, &becomes, &mut |_| Ok(()));
            if pulled.is_ok() {
                there.say(&Message::Taken { hand_over: false }).unwrap();
            }
            drop(there);
            (giving.join().unwrap(), pulled)
        });
        if cut == u64::MAX {
            let (received, taken) = pulled.unwrap();
            assert_eq!(given.unwrap(), taken);
            let [Received::Snapshot(received)] = received[..] else { panic!("{received:?}") };
            let tree = target.store.hold_snapshot(received).unwrap().tree().clone();
            assert_eq!(held.states(), [tree]);
        } else {
            assert!(given.unwrap_err().is_of_connection());
            assert!(pulled.unwrap_err().is_of_connection());
        }
        drop(held);
    }
    // What came before the cuts did not come again.
    assert!(sent[0] > 400_000 && sent[1] > 300_000, "{sent:?}");
    let whole = {
        let other = Side::new(3, None);
        let (mut here, mut there) = pipes(u64::MAX);
        let held = giver(&source, snapshot);
        let intake = other.store.intake(other.store.begin_intake().unwrap()).unwrap();
        std::thread::scope(|scope| {
            let giving = scope.spawn(move || {
                here.give(b"", &held, &mut |_| Ok(())).unwrap();
                here.wire().sent_bytes()
            });
            let (_, states) = there.offered(&mut || Ok(())).unwrap();
            there.pull(&intake, &states, &[Becomes::Snapshot], &mut |_| Ok(())).unwrap();
            there.say(&Message::Taken { hand_over: false }).unwrap();
            giving.join().unwrap()
        })
    };
    assert!(sent.iter().sum::<u64>() < whole + 200_000, "{sent:?} of {whole}");
    source.check();
    target.check();
}

#[test]
fn who_looks_through_it_first_says_how_much_comes() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let id = noisy(&source);
    let held = giver(&source, source.store.snapshot(id).unwrap());
    let (mut here, mut there) = pipes(u64::MAX);
    let intake = target.store.intake(target.store.begin_intake().unwrap()).unwrap();
    let mut expected = 0;
    let given = std::thread::scope(|scope| {
        let giving = scope.spawn(|| {
            here.give(b"", &held, &mut |sent| {
                expected = expected.max(sent.expected_bytes);
                Ok(())
            })
        });
        let (_, states) = there.offered(&mut || Ok(())).unwrap();
        let (estimate, looked) =
            there.estimate(&intake, &states, u64::MAX, &mut |_| Ok(())).unwrap();
        assert!(estimate.whole && looked.blocks > 0);
        let becomes = [Becomes::Snapshot];
        let (_, rest) = there.pull(&intake, &states, &becomes, &mut |_| Ok(())).unwrap();
        there.say(&Message::Taken { hand_over: false }).unwrap();
        let given = giving.join().unwrap().unwrap();
        assert_eq!(given.blocks, looked.blocks + rest.blocks, "nothing came twice");
        given
    });
    let wrong = expected.abs_diff(given.stored_bytes);
    assert!(wrong < given.stored_bytes / 10, "{expected} bytes of {}", given.stored_bytes);
}

#[test]
fn who_asks_for_what_was_not_offered_is_told_no_and_gets_nothing() {
    let source = Side::new(1, None);
    let id = source.dataset(3);
    let held = giver(&source, source.store.snapshot(id).unwrap());
    let (mut here, mut there) = pipes(u64::MAX);
    std::thread::scope(|scope| {
        let giving = scope.spawn(move || here.give(b"", &held, &mut |_| Ok(())));
        there.offered(&mut || Ok(())).unwrap();
        let want = Want { state: 1, path: Vec::new(), children: Vec::new() };
        there.put(&Frame::Want(want).encode(), &mut || Ok(())).unwrap();
        there.flush(&mut || Ok(())).unwrap();
        let refused = hear(&mut there);
        assert!(
            matches!(&refused, Err(Error::Refused(failure)) if failure.code == Kind::Forbidden),
            "{refused:?}"
        );
        assert!(matches!(giving.join().unwrap(), Err(Error::NotOffered)));
    });
}

#[test]
fn who_says_what_does_not_belong_there_is_not_believed() {
    let (mut here, mut there) = pipes(u64::MAX);
    // More than a message may have, from somebody who has not said who it is.
    here.put(&Frame::Manifest(vec![0; MESSAGE_MAX + 1]).encode(), &mut || Ok(())).unwrap();
    here.flush(&mut || Ok(())).unwrap();
    assert!(matches!(hear(&mut there), Err(Error::Confused(_))));
    let (mut here, mut there) = pipes(u64::MAX);
    here.put(&Frame::Message(b"{\"say\":\"sing\"}".to_vec()).encode(), &mut || Ok(())).unwrap();
    here.flush(&mut || Ok(())).unwrap();
    assert!(matches!(hear(&mut there), Err(Error::Confused(_))));
    drop(here);
    assert!(matches!(hear(&mut there), Err(Error::HungUp)));
    // Whoever waits is asked whether it still wants to.
    let (_here, mut there) = pipes(u64::MAX);
    let mut asked = 0;
    let heard = there.hear(&mut || {
        asked += 1;
        if asked == 3 { Err(Error::Cancelled) } else { Ok(()) }
    });
    assert!(matches!(heard, Err(Error::Cancelled)));
}
