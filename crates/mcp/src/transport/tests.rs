use super::*;

/// What is passed on of an input, and how many lines are refused.
fn passed(input: &[u8]) -> (Vec<u8>, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (refuse, mut refused) = mpsc::channel(16);
        let mut output = Vec::new();
        pass_on(input, &mut output, refuse).await;
        let mut count = 0;
        while refused.recv().await.is_some() {
            count += 1;
        }
        (output, count)
    })
}

#[test]
fn what_is_no_message_is_refused_and_the_next_line_read() {
    let text = |input: &[u8]| {
        let (output, refused) = passed(input);
        (String::from_utf8(output).unwrap(), refused)
    };
    assert_eq!(text(b""), (String::new(), 0));
    assert_eq!(text(b"{\"a\":1}\r\n\n{}"), ("{\"a\":1}\r\n\n{}\n".to_owned(), 0));
    assert_eq!(text(b"no\n{}\n"), ("{}\n".to_owned(), 1));
    assert_eq!(text(b"{\"a\":\"\xff\"}\n{}\n{"), ("{}\n".to_owned(), 2));
    let nested = format!("{}{}\n{{}}\n", "[".repeat(1000), "]".repeat(1000));
    assert_eq!(text(nested.as_bytes()), ("{}\n".to_owned(), 1));
    // That mark rmcp puts up with.
    assert_eq!(text("\u{feff}{}\n".as_bytes()).1, 0);
}

#[test]
fn a_line_is_as_long_as_rmcp_takes() {
    let line = |bytes: usize| format!("\"{}\"\n", "x".repeat(bytes - 3));
    let fits = line(LINE_BYTES_MAX);
    assert_eq!(fits.len(), LINE_BYTES_MAX);
    let (output, refused) = passed(fits.as_bytes());
    assert_eq!((output.len(), refused), (LINE_BYTES_MAX, 0));
    for long in [LINE_BYTES_MAX + 1, LINE_BYTES_MAX + 2, LINE_BYTES_MAX + (1 << 20)] {
        let (output, refused) = passed(format!("{}{{}}\n", line(long)).as_bytes());
        assert_eq!((&*output, refused), (&b"{}\n"[..], 1), "{long}");
    }
    let (output, refused) = passed("x".repeat(LINE_BYTES_MAX + 7).as_bytes());
    assert_eq!((output.len(), refused), (0, 1));
}
