//! The engine's share of the processors: a control group of its own, beside those of its servers.
#![allow(clippy::unwrap_used)]

use offshoot_testbed::{PATIENCE, Testbed, wait_until};
use std::path::{Path, PathBuf};

/// The group of a process for the processors.
fn group_of(pid: i32) -> PathBuf {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let of_processors = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|one| one == "cpu").then_some(("cpu", path))
    });
    let (dir, path) =
        of_processors.unwrap_or_else(|| ("", groups.trim().split_once("::").unwrap().1));
    Path::new("/sys/fs/cgroup").join(dir).join(path.trim_start_matches('/'))
}

mod needs_process_groups {
    use super::*;

    #[test]
    #[ignore = "needs root and control groups"]
    fn an_engine_is_in_a_group_of_its_own_and_leaves_none() {
        let mut bed = Testbed::start().unwrap();
        bed.link("shop").unwrap();
        let dev = bed.provision("dev", "shop", &[]).unwrap();
        let own = |bed: &Testbed| group_of(bed.engine.pid().unwrap());
        let name = |group: &Path| group.file_name().unwrap().to_string_lossy().into_owned();
        let first = own(&bed);
        assert_eq!(name(&first), format!("offshoot.{}", bed.engine.pid().unwrap()));
        // While nobody waits for it, four shares.
        let weight = || {
            let of = |file: &str| std::fs::read_to_string(first.join(file)).ok();
            of("cpu.shares").or_else(|| of("cpu.weight")).unwrap().trim().to_owned()
        };
        wait_until("nobody waits", PATIENCE, || Ok(["4096", "400"].contains(&&*weight()))).unwrap();
        // Servers share the processors with the engine, not what it has of them.
        let server = bed.open("dev").unwrap().number("SELECT pg_backend_pid()").unwrap();
        let of_server = group_of(i32::try_from(server).unwrap());
        assert_eq!(of_server.parent(), first.parent(), "{of_server:?}");
        assert!(name(&of_server).starts_with("offshoot-"), "{of_server:?}");

        // One that was killed leaves its group to the next one, one that ends leaves nothing.
        bed.engine.kill().unwrap();
        bed.engine.restart().unwrap();
        assert!(own(&bed) != first);
        let second = own(&bed);
        bed.engine.take_over().unwrap();
        assert_eq!(bed.open("dev").unwrap().number("SELECT 1").unwrap(), 1);
        assert_eq!(bed.vdb("dev").unwrap().port, dev.port);
        let third = own(&bed);
        assert_eq!(bed.engine.stop().unwrap(), 0);
        // The keeper of the first one is gone, too.
        wait_until("its group is gone", PATIENCE, || Ok(!third.exists())).unwrap();
        assert!(!second.exists(), "{second:?}");
    }
}
