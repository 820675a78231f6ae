use super::*;

#[test]
fn finds_its_own_group_in_either_version() {
    let v1 = "12:cpu,cpuacct:/a\n5:memory:/b/c\n0::/d\n";
    let (dir, file) = parent_of(v1, true).expect("a memory controller");
    assert_eq!((dir.to_str(), file), (Some("/sys/fs/cgroup/memory/b/c"), "memory.limit_in_bytes"));
    let v2 = "0::/user.slice/engine\n";
    let (dir, file) = parent_of(v2, false).expect("the unified hierarchy");
    assert_eq!((dir.to_str(), file), (Some("/sys/fs/cgroup/user.slice/engine"), "memory.max"));
    assert_eq!(parent_of("3:cpu:/\n0::/\n", true), None, "no memory controller");
    assert_eq!(parent_of("nonsense", false), None);
}

mod needs_memory_groups {
    use super::*;

    #[test]
    #[ignore = "needs root and memory control groups"]
    fn limits_a_process() {
        let name = format!("offshoot-test-{}", std::process::id());
        let group =
            MemoryGroup::create(&name, 64 << 20).expect("a memory control group of its own");
        let mut child = crate::process::Spec::new("sleep").arg("60").spawn().expect("sleep runs");
        let added = group.add(child.pid());
        let inside = std::fs::read_to_string(group.dir.join("cgroup.procs")).unwrap_or_default();
        let pid = child.pid();
        child.kill_group();
        let _ = child.wait_timeout(std::time::Duration::from_secs(120));
        let removed = (0..6000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            group.remove().is_ok()
        });
        added.expect("the process is moved");
        assert!(inside.lines().any(|line| line.trim() == pid.to_string()), "{inside}");
        assert!(removed, "an empty group goes");
        assert_eq!(MemoryGroup::find(&name), None);
    }
}
