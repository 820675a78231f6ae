//! An engine with few descriptors, while somebody takes as many as he can.
#![allow(clippy::unwrap_used)]

use offshoot_api::Status;
use offshoot_rig::{EngineOptions, Scratch, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, binary};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// The limit of this engine, hard and soft.
const LIMIT: usize = 160;

#[test]
fn connections_that_take_all_descriptors_break_nothing() {
    let scratch = Scratch::new("few").unwrap();
    let wrapper = scratch.path().join("offshoot");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = serve ] && ulimit -n {LIMIT}\nexec '{}' \"$@\"\n",
        binary().display()
    );
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    let mut options = EngineOptions::new(wrapper);
    options.cache_size = "64MiB".into();
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let mut bed = Testbed::with_engine(source, options).unwrap();
    bed.link("prod").unwrap();
    bed.provision("dev", "prod", &[]).unwrap();
    let db = bed.open("dev").unwrap();
    let status: Status = bed.engine.ask(["status"]).unwrap();

    // Those that the engine does not accept wait in the system's queue, which has an end.
    let address = status.listen.parse().unwrap();
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let connections: Vec<TcpStream> = (0..2 * LIMIT).map_while(connect).collect();
    assert!(connections.len() > LIMIT / 4, "{}", connections.len());
    db.execute("CREATE TABLE noise (line text)").unwrap();
    for _ in 0..10 {
        db.execute("INSERT INTO noise SELECT md5(i::text) FROM generate_series(1, 20000) i")
            .unwrap();
        db.execute("CHECKPOINT").unwrap();
    }
    assert_eq!(db.number("SELECT count(*) FROM noise").unwrap(), 200_000);
    drop(connections);

    let after: Status = bed.engine.ask(["status"]).unwrap();
    assert_eq!(after.faults, [], "nothing is damaged");
    let log = std::fs::read_to_string(bed.engine.log()).unwrap();
    assert!(!log.contains("Too many open files"), "{log}");
    bed.provision("more", "prod", &[]).unwrap();
    assert_eq!(bed.engine.stop().unwrap(), 0);
}
