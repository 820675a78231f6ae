use super::super::peer::Peer;
use super::super::places::Places;
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const PAUSE: Duration = Duration::from_millis(300);

fn connection<S>(stream: S) -> Connection<S> {
    let place = Places::remote().take(&Peer::Remote("192.0.2.1:1".parse().unwrap()));
    Connection::with_pause(stream, place.unwrap(), PAUSE)
}

#[tokio::test]
async fn a_reader_that_stops_reading_is_given_up() {
    let (near, far) = duplex(1024);
    let mut near = connection(near);
    let begun = Instant::now();
    let error = near.write_all(&[0; 4096]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(begun.elapsed() >= PAUSE);
    drop(far);
}

#[tokio::test]
async fn a_slow_reader_is_waited_for() {
    let (near, mut far) = duplex(1024);
    let mut near = connection(near);
    let write = async { near.write_all(&[0; 8192]).await };
    let read = async {
        for _ in 0..8 {
            sleep(PAUSE / 4).await;
            far.read_exact(&mut [0; 1024]).await.unwrap();
        }
    };
    let (written, ()) = tokio::join!(write, read);
    written.unwrap();
}
