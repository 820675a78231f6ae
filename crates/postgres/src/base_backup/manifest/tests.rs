use super::*;
use offshoot_types::ErrorKind;

/// A manifest as a server writes it.
fn text(files: &str) -> String {
    let body = format!(
        "{{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [\n{files}\n],\n\
         \"WAL-Ranges\": [\n{{ \"Timeline\": 1, \"Start-LSN\": \"0/2000028\", \
         \"End-LSN\": \"0/2000100\" }}\n],\n"
    );
    let sum = hex(&Sha256::digest(body.as_bytes()));
    format!("{body}\"Manifest-Checksum\": \"{sum}\"}}\n")
}

fn file(path: &str, content: &[u8]) -> String {
    let sum = hex(&crc32c::crc32c(content).to_le_bytes());
    format!(
        "{{ \"Path\": \"{path}\", \"Size\": {}, \"Last-Modified\": \"2026-11-21 10:00:00 GMT\", \
         \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"{sum}\" }}",
        content.len()
    )
}

fn received(files: &[(&str, &[u8])]) -> Received {
    let sum = |content: &[u8]| (content.len() as u64, crc32c::crc32c(content));
    files.iter().map(|(path, content)| ((*path).to_owned(), sum(content))).collect()
}

#[test]
fn what_was_sent_and_came_is_accepted() {
    let status = "pg_wal/archive_status/0.done";
    let listed = [file("base/1", b"one"), file("a\\\"b", b""), file(status, b"")];
    let text = text(&listed.join(",\n"));
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    assert_eq!(manifest.end(), Some(Lsn(0x2000100)));
    let mut came = received(&[("base/1", b"one"), ("a\"b", b""), (status, b"")]);
    came.extend(received(&[("backup_manifest", b"x"), ("pg_wal/0", b"log")]));
    manifest.verify(&came).unwrap();
}

#[test]
fn every_difference_is_found() {
    let text = text(&[file("base/1", b"one"), file("base/2", b"two")].join(",\n"));
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    let one: (&str, &[u8]) = ("base/1", b"one");
    let cases = [
        (received(&[one]), "\"base/2\" is missing"),
        (received(&[one, ("base/2", b"twos")]), "\"base/2\" has 4 bytes instead of 3"),
        (received(&[one, ("base/2", b"twO")]), "\"base/2\" has another checksum"),
        (received(&[one, ("base/2", b"two"), ("base/3", b"")]), "\"base/3\" was not announced"),
    ];
    for (came, says) in cases {
        let failure = manifest.verify(&came).unwrap_err();
        assert_eq!(failure.code, ErrorKind::DataDamaged);
        assert!(failure.message.contains(says), "{failure}");
    }
}

#[test]
fn a_damaged_manifest_is_refused() {
    let text = text(&file("base/1", b"one"));
    let damaged = text.replace("base/1", "base/2");
    assert!(Manifest::parse(damaged.as_bytes()).unwrap_err().contains("checksum"));
    assert!(Manifest::parse(&text.as_bytes()[..text.len() / 2]).is_err());
    assert!(Manifest::parse(b"").is_err());
}
