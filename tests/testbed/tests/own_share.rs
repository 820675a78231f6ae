//! Shares of the processors: the engine has a control group of its own, beside those of its servers, and staging gives way.
#![allow(clippy::unwrap_used)]

use anyhow::Context;
use offshoot_os::cgroup::Group;
use offshoot_testbed::{PATIENCE, Testbed, wait_until, with_log};
use std::cell::RefCell;

/// The group of a process with a name that begins like this, and its name.
fn group_of(pid: i32, prefix: &str) -> Option<(Group, String)> {
    let found = RefCell::new(String::new());
    let group = Group::holding(pid, |name| {
        let wanted = name.starts_with(prefix);
        if wanted {
            name.clone_into(&mut found.borrow_mut());
        }
        wanted
    });
    Some((group?, found.into_inner()))
}

mod needs_process_groups {
    use super::*;

    #[test]
    #[ignore = "needs root and control groups"]
    fn an_engine_is_in_a_group_of_its_own_and_leaves_none() {
        let mut bed = Testbed::start().unwrap();
        bed.link("shop").unwrap();
        let dev = bed.provision("dev", "shop", &[]).unwrap();
        let own = |bed: &Testbed| {
            let group = group_of(bed.engine.pid().unwrap(), "offshoot.");
            with_log(&bed.engine, group.context("the engine's group")).unwrap()
        };
        let (group, first) = own(&bed);
        assert_eq!(first, format!("offshoot.{}", bed.engine.pid().unwrap()));
        // While nobody waits for it, four shares.
        let share = || Ok(group.processor_share()? == 400);
        wait_until("nobody waits", PATIENCE, share).unwrap();
        // Servers share the processors with the engine, not what it has of them: their groups are where this test would make some.
        let session = bed.open("dev").unwrap();
        let server = session.number("SELECT pg_backend_pid()").unwrap();
        let (of_server, name) = group_of(i32::try_from(server).unwrap(), "offshoot-").unwrap();
        assert_eq!(Group::find(&name), Some(of_server));
        drop(session);
        assert_eq!(Group::find(&first), Some(group));

        // One that was killed leaves its group to the next one, one that ends leaves nothing.
        bed.engine.kill().unwrap();
        bed.engine.restart().unwrap();
        let (_, second) = own(&bed);
        assert!(second != first);
        bed.engine.take_over().unwrap();
        assert_eq!(bed.open("dev").unwrap().number("SELECT 1").unwrap(), 1);
        assert_eq!(bed.vdb("dev").unwrap().port, dev.port);
        let (_, third) = own(&bed);
        assert_eq!(bed.engine.stop().unwrap(), 0);
        // The keeper of the first one is gone, too.
        wait_until("its group is gone", PATIENCE, || Ok(Group::find(&third).is_none())).unwrap();
        assert_eq!(Group::find(&second), None);
    }

    #[test]
    #[ignore = "needs root and control groups"]
    fn staging_gives_way() {
        let bed = Testbed::start().unwrap();
        bed.link("shop").unwrap();
        let replay = bed.replaying("shop").unwrap();
        let (group, _) = group_of(replay.pid, "offshoot-").unwrap();
        let share = || Ok(group.processor_share()? == 25);
        let waited = wait_until("its share", PATIENCE, share);
        with_log(&bed.engine, waited).unwrap();
    }
}
