use super::*;

#[test]
fn finds_its_own_group_in_either_version() {
    let place = |text: &str, controller, has_v1| {
        let place = place_in(text, controller, has_v1)?;
        Some((place.dir.display().to_string(), controller.limit_file(place.version)))
    };
    let found = |dir: &str, file| Some((dir.to_owned(), file));
    let v1 = "12:cpu,cpuacct:/a\n5:memory:/b/c\n6:pids:/\n0::/d\n";
    assert_eq!(
        place(v1, Controller::Memory, true),
        found("/sys/fs/cgroup/memory/b/c", "memory.limit_in_bytes")
    );
    assert_eq!(place(v1, Controller::Processes, true), found("/sys/fs/cgroup/pids/", "pids.max"));
    assert_eq!(
        place(v1, Controller::Processors, true),
        found("/sys/fs/cgroup/cpu/a", "cpu.shares")
    );
    let v2 = "0::/user.slice/engine\n";
    let dir = "/sys/fs/cgroup/user.slice/engine";
    assert_eq!(place(v2, Controller::Memory, false), found(dir, "memory.max"));
    assert_eq!(place(v2, Controller::Processes, false), found(dir, "pids.max"));
    let none = place("3:cpu:/\n0::/\n", Controller::Memory, true);
    assert_eq!(none, None, "no memory controller");
    assert_eq!(place("nonsense", Controller::Memory, false), None);
}

#[test]
fn the_group_for_servers_is_taken_with_version_two_alone() {
    let given = Path::new("/sys/fs/cgroup/system.slice/offshoot-vdbs.service");
    let place = |has_v1| place_in("4:memory:/a\n0::/b\n", Controller::Memory, has_v1).unwrap();
    assert_eq!(place(false).moved_to(given).dir, given);
    assert_eq!(place(true).moved_to(given), place(true));
}

use crate::process::{Child, Spec};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn group(purpose: &str) -> (String, Group) {
    let name = format!("offshoot-test-{purpose}-{}", std::process::id());
    let group = Group::create(&name).expect("a control group of its own");
    (name, group)
}

fn end(mut child: Child, group: &Group) {
    child.kill_group();
    let _ = child.wait_timeout(PATIENCE);
    let removed = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        group.remove().is_ok()
    });
    assert!(removed, "an empty group goes");
}

mod needs_memory_groups {
    use super::*;

    #[test]
    #[ignore = "needs root and control groups"]
    fn groups_of_processes_that_are_gone_are_removed() {
        let mut gone = Spec::new("true").spawn().expect("true runs");
        let gone_pid = gone.pid();
        gone.wait_timeout(PATIENCE).expect("it ends");
        let make = |pid: i32| {
            let name = format!("offshoot-left-{pid}-server");
            (Group::create(&name).expect("a control group"), name)
        };
        let (of_gone, of_this) = (make(gone_pid), make(std::process::id() as i32));
        remove_left("offshoot-left-");
        let found = [&of_gone.1, &of_this.1].map(|name| Group::find(name).is_some());
        of_this.0.remove().expect("an empty group goes");
        assert_eq!(found, [false, true]);
    }

    #[test]
    #[ignore = "needs root and memory control groups"]
    fn limits_a_process() {
        let (name, group) = group("memory");
        assert!(!group.limits_memory());
        group.limit_memory(64 << 20).expect("a limit");
        assert!(group.limits_memory());
        let child = Spec::new("sleep").arg("60").spawn().expect("sleep runs");
        group.add(child.pid()).expect("the process is moved");
        let (pid, wanted) = (child.pid(), name.clone());
        let found = Group::holding(pid, |one| one == wanted);
        let other = Group::holding(pid, |one| one == "another");
        let inside = std::fs::read_to_string(group.memory().unwrap().join("cgroup.procs")).unwrap();
        end(child, &group);
        assert_eq!((found.as_ref(), other), (Some(&group), None));
        assert!(inside.lines().any(|line| line.trim() == pid.to_string()), "{inside}");
        assert_eq!(Group::find(&name), None);
    }
}

mod needs_process_groups {
    use super::*;

    #[test]
    #[ignore = "needs root and control groups of processes"]
    fn limits_how_many_there_are() {
        let (_, group) = group("processes");
        group.limit_processes(5).expect("a limit");
        let script = "sleep 1; for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait";
        let child = Spec::new("bash").args(["-c", script]).spawn().expect("bash runs");
        group.add(child.pid()).expect("the process is moved");
        std::thread::sleep(Duration::from_secs(4));
        let place = group.place(Controller::Processes).unwrap();
        let text = std::fs::read_to_string(place.dir.join("pids.current"));
        end(child, &group);
        assert_eq!(text.expect("a count").trim(), "5");
    }

    /// Ticks of processor time that the processes of a group have taken.
    fn ticks(group: &Group) -> u64 {
        let dir = &group.place(Controller::Processors).unwrap().dir;
        let inside = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        let stat = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let user =
            |text: String| text.rsplit(')').next()?.split_whitespace().nth(11)?.parse::<u64>().ok();
        inside.lines().filter_map(|pid| stat(pid.trim()).and_then(user)).sum::<u64>()
    }

    #[test]
    #[ignore = "needs root and control groups of processors"]
    fn something_is_left_of_the_processors() {
        let (_, group) = group("all");
        group.share_processors().expect("a share");
        let place = group.place(Controller::Processors).unwrap();
        let file = match place.version {
            Version::One => "cpu.cfs_quota_us",
            Version::Two => "cpu.max",
        };
        let most = std::fs::read_to_string(place.dir.join(file)).unwrap();
        group.remove().expect("it is empty");
        // Microseconds of each tenth of a second, on all processors together.
        let processors = std::thread::available_parallelism().unwrap().get();
        assert_eq!(most.split_whitespace().next(), Some(&*(processors * 98_000).to_string()));
    }

    #[test]
    #[ignore = "needs root and control groups of processors"]
    fn many_processes_take_no_more_than_one() {
        let busy = |count: u32| {
            let script =
                format!("sleep 1; for i in $(seq {count}); do (while :; do :; done) & done; wait");
            // One processor, so that there is not enough for both.
            Spec::new("taskset").args(["-c", "0", "bash", "-c", &script]).spawn().expect("it runs")
        };
        let (one, twenty) = (group("one").1, group("twenty").1);
        let mut children = Vec::new();
        for (group, count) in [(&one, 1), (&twenty, 20)] {
            group.share_processors().expect("a share");
            let child = busy(count);
            group.add(child.pid()).expect("the process is moved");
            children.push(child);
        }
        std::thread::sleep(Duration::from_secs(6));
        let (small, large) = (ticks(&one), ticks(&twenty));
        for (child, group) in children.into_iter().zip([&one, &twenty]) {
            end(child, group);
        }
        assert!(small * 2 > large, "one process had {small} ticks, twenty of another {large}");
    }
}
