//! Checks find damage, and only damage.

use std::os::unix::fs::FileExt;
use std::path::Path;

use offshoot_os::process::Spec;
use offshoot_postgres::check_image::{check_running, check_stopped};
use offshoot_postgres::config::{self, Settings, VdbOptions};
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_types::ErrorKind;

use crate::cluster::*;

const PAGE: usize = 8192;

fn start(scratch: &Scratch, bin: &Path, data: &Path) -> Server {
    let mut spec = scratch.spec(bin, data, "image");
    spec.superusers = vec![BOSS.to_owned()];
    let mut server = server::start(spec).unwrap();
    server.wait_ready(DEADLINE).unwrap();
    server
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
        drop(session);
        let sound = check_running(&server, DEADLINE).unwrap();
        assert!(sound.sound(), "{sound:?}");
        assert_eq!(sound.unchecked.is_empty(), has_amcheck(&bin), "{sound:?}");
        let mut session = server.connect().unwrap();
        let left = "SELECT extname FROM pg_extension WHERE extname = 'amcheck'";
        assert!(session.query(left, DEADLINE).unwrap().is_empty());
        drop(session);

        let stopped = |deadline| check_stopped(&bin, &data, user().as_ref(), deadline);
        assert_eq!(stopped(DEADLINE).unwrap_err().code, ErrorKind::WrongState);
        assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
        assert!(stopped(DEADLINE).unwrap().sound());

        swap_pages(&index, 1, 2);
        let found = stopped(DEADLINE).unwrap();
        let text = found.damage.join("\n");
        assert!(!found.sound() && text.contains(index.file_name().unwrap().to_str().unwrap()));

        // Without checksums only the order of the keys tells.
        let mut disable = Spec::new(bin.join("pg_checksums"));
        disable = disable.args(["--disable", "--no-sync", "-D"]).arg(&data);
        succeed(disable);
        let unchecked = stopped(DEADLINE).unwrap();
        assert!(unchecked.sound() && !unchecked.unchecked.is_empty());
        let mut server = start(&scratch, &bin, &data);
        let found = check_running(&server, DEADLINE).unwrap();
        if !has_amcheck(&bin) {
            assert!(found.sound() && !found.unchecked.is_empty(), "{found:?}");
            continue;
        }
        assert!(found.damage.iter().any(|line| line.contains("t_i")), "{found:?}");
        assert!(!found.damage.iter().any(|line| line.contains("t_m")), "{found:?}");
        server.stop(StopMode::Immediate, DEADLINE).unwrap();
    }
}
