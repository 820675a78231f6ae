use super::*;
use http_body_util::BodyExt;

#[tokio::test]
async fn bytes_come_as_they_were_sent() {
    let (sender, mut incoming) = Incoming::new();
    let reader = tokio::task::spawn_blocking(move || {
        let mut all = Vec::new();
        incoming.read_to_end(&mut all).map(|_| all)
    });
    for chunk in ["one ", "", "two"] {
        sender.send(Ok(Some(Bytes::from(chunk)))).await.unwrap();
    }
    sender.send(Ok(None)).await.unwrap();
    assert_eq!(reader.await.unwrap().unwrap(), b"one two");
}

#[tokio::test]
async fn a_sender_that_is_gone_is_no_end() {
    let (sender, mut incoming) = Incoming::new();
    sender.send(Ok(Some(Bytes::from("half")))).await.unwrap();
    drop(sender);
    let read = tokio::task::spawn_blocking(move || incoming.read_to_end(&mut Vec::new()));
    assert_eq!(read.await.unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn what_is_written_is_the_body_and_a_failure_cuts_it_off() {
    let (mut out, body) = outgoing();
    let bytes = vec![7; CHUNK_BYTES * 20 + 5];
    let sent = bytes.clone();
    let writer = tokio::task::spawn_blocking(move || {
        sent.chunks(1000).try_for_each(|some| out.write_all(some)).and_then(|()| out.flush())
    });
    assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
    writer.await.unwrap().unwrap();
    let (out, body) = outgoing();
    tokio::task::spawn_blocking(move || out.fail(&Failure::internal("no"))).await.unwrap();
    assert!(body.collect().await.is_err());
}
