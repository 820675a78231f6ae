//! Checks find damage, and only damage.

#![allow(clippy::single_range_in_vec_init)] // one range of pages is meant

use std::os::unix::fs::FileExt;
use std::path::Path;

use offshoot_os::process::{Spec, run};
use offshoot_postgres::check_image::{Findings, Scope, check_pages, check_running};
use offshoot_postgres::config::{self, Settings, VdbOptions};
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_types::{ErrorKind, Failure};

use crate::cluster::*;

const PAGE: usize = 8192;

fn start(scratch: &Scratch, bin: &Path, data: &Path) -> Server {
    let mut spec = scratch.spec(bin, data, "image");
    spec.superusers = vec![BOSS.to_owned()];
    let mut server = server::start(spec).unwrap();
    server.wait_ready(DEADLINE).unwrap();
    server
}

/// All of an image, or only what `changed` says.
pub fn scope(
    bin: &Path,
    data: &Path,
    changed: impl Fn(&str) -> Option<Vec<std::ops::Range<u64>>>,
) -> Scope {
    Scope::of(&control(bin, data), &plain(data), |path| Ok(changed(path))).unwrap()
}

pub fn check_stopped(bin: &Path, data: &Path, scope: &Scope) -> Result<Findings, Failure> {
    let mut read = 0;
    let mut tick = |bytes| {
        read += bytes;
        Ok(())
    };
    let found = check_pages(&control(bin, data), &plain(data), scope, &mut tick);
    if found.as_ref().is_ok_and(|found| found.unchecked.is_empty()) {
        assert_eq!(read, scope.bytes());
    }
    found
}

/// What PostgreSQL's own tool says about the checksums.
fn pg_checksums_passes(bin: &Path, data: &Path) -> bool {
    let spec = Spec::new(bin.join("pg_checksums")).args(["--check", "-D"]).arg(data);
    run(&spec.user(user()).cwd("/"), DEADLINE).unwrap().success()
}

fn swap_pages(file: &Path, one: u64, other: u64) {
    let file = std::fs::File::options().read(true).write(true).open(file).unwrap();
    let (mut first, mut second) = ([0; PAGE], [0; PAGE]);
    let at = |page: u64| page * PAGE as u64;
    file.read_exact_at(&mut first, at(one)).unwrap();
    file.read_exact_at(&mut second, at(other)).unwrap();
    file.write_all_at(&second, at(one)).unwrap();
    file.write_all_at(&first, at(other)).unwrap();
}

#[test]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn damage_is_found_by_checksums_and_by_structure() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let data = fresh(&scratch, &bin, "data");
        let dir = plain(&data);
        config::adopt(&dir, &bin, user().as_ref(), &Settings::new()).unwrap();
        config::write_vdb(&dir, &control(&bin, &data), &VdbOptions::default()).unwrap();
        let mut server = start(&scratch, &bin, &data);
        let mut session = server.connect().unwrap();
        session
            .execute(
                "CREATE TABLE public.t AS SELECT i, md5(i::text) AS m \
                 FROM generate_series(1, 5000) i; CREATE INDEX t_i ON public.t (i); \
                 CREATE INDEX t_m ON public.t (m);",
                DEADLINE,
            )
            .unwrap();
        let path = "SELECT pg_relation_filepath('public.t_i')";
        let index = data.join(session.query_column(path, DEADLINE).unwrap().remove(0));
        let path = "SELECT pg_relation_filepath('public.t')";
        let heap = data.join(session.query_column(path, DEADLINE).unwrap().remove(0));
        session.execute("CHECKPOINT", DEADLINE).unwrap();
        drop(session);
        let all = scope(&bin, &data, |_| None);
        let check = |server: &Server, scope: &Scope| {
            check_running(server, scope, DEADLINE, &mut |_| Ok(())).unwrap()
        };
        let sound = check(&server, &all);
        assert!(sound.sound(), "{sound:?}");
        assert_eq!(sound.unchecked.is_empty(), has_amcheck(&bin), "{sound:?}");
        let read = |path: &Path| sound.read.iter().any(|one| path.ends_with(one));
        assert_eq!((read(&heap), read(&index)), (has_amcheck(&bin), false), "{:?}", sound.read);
        let mut session = server.connect().unwrap();
        let left = "SELECT extname FROM pg_extension WHERE extname = 'amcheck'";
        assert!(session.query(left, DEADLINE).unwrap().is_empty());
        drop(session);

        assert_eq!(check_stopped(&bin, &data, &all).unwrap_err().code, ErrorKind::WrongState);
        assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
        let all = scope(&bin, &data, |_| None);
        assert_eq!(check_stopped(&bin, &data, &all).unwrap(), Findings::default());
        assert!(pg_checksums_passes(&bin, &data));

        // A server that reads a page verifies it: what it has read need not be read again.
        flip_free_byte(&heap, 3);
        assert_eq!(check_stopped(&bin, &data, &all).unwrap().damage.len(), 1);
        let mut server = start(&scratch, &bin, &data);
        let found = check(&server, &all);
        server.stop(StopMode::Immediate, DEADLINE).unwrap();
        let invalid = found.damage.iter().any(|line| line.contains("public.t: "));
        assert_eq!(
            (invalid, found.damage.len()),
            (has_amcheck(&bin), invalid as usize),
            "{found:?}"
        );
        flip_free_byte(&heap, 3);
        let mut server = start(&scratch, &bin, &data);
        let again = check(&server, &all);
        assert!(again.sound() && again.read == sound.read, "{again:?}");
        assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
        let all = scope(&bin, &data, |_| None);

        swap_pages(&index, 1, 2);
        let name = index.file_name().unwrap().to_str().unwrap();
        let found = check_stopped(&bin, &data, &all).unwrap();
        let places = |page| format!("/{name}: page {page}: wrong checksum");
        assert!(found.damage.len() == 2, "{found:?}");
        assert!([1, 2].iter().all(|n| found.damage.iter().any(|one| one.ends_with(&places(*n)))));
        assert!(!pg_checksums_passes(&bin, &data));
        let but = |path: &str, pages| path.ends_with(&format!("/{name}")).then_some(pages);
        let other = scope(&bin, &data, |path| but(path, vec![0..1, 3..9]));
        assert!(check_stopped(&bin, &data, &other).unwrap().sound());
        let half = scope(&bin, &data, |path| but(path, vec![2..9]));
        assert_eq!(check_stopped(&bin, &data, &half).unwrap().damage.len(), 1);

        // Without checksums only the order of the keys tells.
        let mut disable = Spec::new(bin.join("pg_checksums"));
        disable = disable.args(["--disable", "--no-sync", "-D"]).arg(&data);
        succeed(disable);
        let unchecked = check_stopped(&bin, &data, &all).unwrap();
        assert!(unchecked.sound() && !unchecked.unchecked.is_empty());
        break_item(&heap, 7);
        let mut server = start(&scratch, &bin, &data);
        let found = check(&server, &all);
        if !has_amcheck(&bin) {
            assert!(found.sound() && !found.unchecked.is_empty(), "{found:?}");
            continue;
        }
        let of = |found: &Findings, what: &str| {
            found.damage.iter().filter(|line| line.contains(what)).count()
        };
        assert_eq!((of(&found, ".t_i: "), of(&found, ".t_m: ")), (1, 0), "{found:?}");
        assert!(of(&found, ".t: block 7") > 0, "{found:?}");
        // Only what changed is asked for: neither the broken page nor the broken index.
        let heap = heap.file_name().unwrap().to_str().unwrap();
        let without = scope(&bin, &data, |path| match path.rsplit('/').next() {
            Some(file) if file == name => Some(vec![]),
            Some(file) if file == heap => Some(vec![0..7, 8..1_000_000]),
            _ => None,
        });
        assert!(check(&server, &without).sound(), "{:?}", check(&server, &without));
        let page = |path: &str| path.ends_with(heap).then(|| vec![6..8]).or(Some(vec![]));
        let found = check(&server, &scope(&bin, &data, page));
        assert!(of(&found, ".t: block 7") > 0 && of(&found, ".t_i") == 0, "{found:?}");
        let mut ended = |_| Err(Failure::internal("enough"));
        assert!(check_running(&server, &all, DEADLINE, &mut ended).is_err());
        server.stop(StopMode::Immediate, DEADLINE).unwrap();
    }
}

/// Makes the first item of a heap page point past the page's end.
fn break_item(file: &Path, page: u64) {
    const ITEMS_AT: u64 = 24;
    // Offset 32,760 of 15 bits, in use, 28 bytes long.
    let item = 0x7ff8_u32 | 1 << 15 | 28 << 17;
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.write_all_at(&item.to_ne_bytes(), page * PAGE as u64 + ITEMS_AT).unwrap();
}

/// Changes a byte between the items and the tuples of a page, which nothing uses.
fn flip_free_byte(file: &Path, page: u64) {
    const LOWER_AT: u64 = 12;
    let file = std::fs::File::options().read(true).write(true).open(file).unwrap();
    let mut lower = [0; 2];
    file.read_exact_at(&mut lower, page * PAGE as u64 + LOWER_AT).unwrap();
    let at = page * PAGE as u64 + u64::from(u16::from_ne_bytes(lower));
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}
