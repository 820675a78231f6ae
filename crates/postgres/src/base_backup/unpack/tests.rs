use super::*;
use offshoot_connector::PlainDir;
use offshoot_types::ErrorKind;
use tar::{Builder, Header};

/// An archive of one entry with an unchecked path.
fn archive(path: &str, kind: EntryType, content: &[u8]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    append(&mut builder, path, kind, content);
    builder.into_inner().unwrap()
}

fn append(builder: &mut Builder<Vec<u8>>, path: &str, kind: EntryType, content: &[u8]) {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o100_640);
    header.set_size(content.len() as u64);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

fn unpacked(archive: &[u8]) -> (tempfile::TempDir, Result<Received, Stopped>) {
    let place = tempfile::tempdir().unwrap();
    let received = unpack(archive, &PlainDir::new(place.path()));
    (place, received)
}

#[test]
fn files_come_with_their_content_and_sums() {
    let big: Vec<u8> = (0..PIECE_LEN * 2 + 4321).map(|at| (at * 7 / 3) as u8).collect();
    let mut builder = Builder::new(Vec::new());
    append(&mut builder, "base", EntryType::Directory, &[]);
    append(&mut builder, "base/1", EntryType::Regular, &big);
    append(&mut builder, "./base/2", EntryType::Regular, b"");
    let (place, received) = unpacked(&builder.into_inner().unwrap());
    let received = received.unwrap();
    assert_eq!(std::fs::read(place.path().join("base/1")).unwrap(), big);
    assert_eq!(received["base/1"], (big.len() as u64, crc32c::crc32c(&big)));
    assert_eq!(received["base/2"], (0, 0));
    use std::os::unix::fs::PermissionsExt;
    let mode = place.path().join("base/2").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn nothing_is_made_outside_and_nothing_but_files_and_directories() {
    for (path, kind) in [
        ("../evil", EntryType::Regular),
        ("a/../../evil", EntryType::Regular),
        ("/tmp/evil", EntryType::Regular),
        ("pg_tblspc/1", EntryType::Symlink),
        ("hard", EntryType::Link),
        ("device", EntryType::Block),
        ("././@LongLink", EntryType::GNULongName),
    ] {
        let (place, received) = unpacked(&archive(path, kind, &[]));
        assert!(matches!(received, Err(Stopped::Content(_))), "{path}: {received:?}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{path}");
    }
}

#[test]
fn an_early_end_is_told_from_a_whole_archive() {
    let whole = archive("file", EntryType::Regular, &[7; 5000]);
    for length in [100, 512, 3000, 5511] {
        let (_place, received) = unpacked(&whole[..length]);
        assert!(matches!(received, Err(Stopped::Stream(_))), "{length}: {received:?}");
    }
    unpacked(&whole).1.unwrap();
}

#[test]
fn a_target_that_is_full_is_the_pools_matter() {
    let full = || io::Error::from_raw_os_error(libc::ENOSPC);
    let failure = Stopped::Target("base/1".into(), full()).failure();
    assert_eq!(failure.code, ErrorKind::PoolFull);
    let failure = Stopped::Target("base/1".into(), io::Error::other("broken")).failure();
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
}
