//! Limits for groups of processes, by control groups of either version.
//!
//! A group is made below this process's own, so that limits set on the engine from outside still hold. With version 2 a group that
//! has processes cannot limit the memory of groups below it, and systemd starts no process in one that does. So its service is
//! given a second group by the package, which has no processes of its own: see [`FOR_SERVERS`].
//! Version 1 keeps a directory for each controller, version 2 one for all.
//! See the kernel's `admin-guide/cgroup-v1/memory.rst`, `pids.rst` and `admin-guide/cgroup-v2.rst`.

use crate::process::{ProcessId, is_at_work};
use crate::{Clock, SystemClock};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Where the controllers of version 1 are, and version 2.
const ROOT: &str = "/sys/fs/cgroup";

/// The group that the unit `offshoot-vdbs.service` of the package is delegated, below [`ROOT`].
const FOR_SERVERS: &str = "system.slice/offshoot-vdbs.service";

/// What can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controller {
    Memory,
    Processes,
    Processors,
}

const CONTROLLERS: [Controller; 3] =
    [Controller::Memory, Controller::Processes, Controller::Processors];

impl Controller {
    /// As the kernel calls it.
    fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Processes => "pids",
            Controller::Processors => "cpu",
        }
    }

    /// The file with the limit, or the weight.
    fn limit_file(self, version: Version) -> &'static str {
        match (self, version) {
            (Controller::Memory, Version::One) => "memory.limit_in_bytes",
            (Controller::Memory, Version::Two) => "memory.max",
            (Controller::Processes, _) => "pids.max",
            (Controller::Processors, Version::One) => "cpu.shares",
            (Controller::Processors, Version::Two) => "cpu.weight",
        }
    }

    /// Whether version 1 has this controller here.
    fn is_of_version_one(self) -> bool {
        Path::new(ROOT).join(self.name()).is_dir()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    /// The weight that a group has if nobody gave it another.
    fn usual_weight(self) -> u64 {
        match self {
            Version::One => 1024,
            Version::Two => 100,
        }
    }
}

/// How long a group may have the processors to itself, in microseconds: the kernel's usual period.
const PERIOD_US: u64 = 100_000;
/// How much of the processors is left to all others in each period, in percent.
const LEFT_PERCENT: u64 = 2;

/// The directory of a group for one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    controller: Controller,
    version: Version,
    dir: PathBuf,
}

/// How often to try to enter a new group, and how long to wait in between.
const ENTER_TRIES: u32 = 10;
const ENTER_PAUSE: Duration = Duration::from_millis(10);

/// More bytes than any limit.
const UNLIMITED: u64 = 1 << 60;

/// A control group. Dropping it leaves it in place; see [`Group::remove`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    places: Vec<Place>,
}

impl Group {
    /// Makes the group `name`, or takes it over. It has no limits yet.
    ///
    /// # Errors
    /// `Unsupported` where this host has no controller that this process may use, otherwise the operating
    /// system's error.
    pub fn create(name: &str) -> io::Result<Group> {
        let mut group = Group { places: Vec::new() };
        let mut refused = io::Error::new(io::ErrorKind::Unsupported, "there are no controllers");
        for own in homes() {
            match own.make_below(name) {
                Ok(place) => group.places.push(place),
                Err(error) => refused = error,
            }
        }
        if group.places.is_empty() { Err(refused) } else { Ok(group) }
    }

    /// Moves this process into the group `name`, which shares the processors and limits nothing. Other groups are still made where
    /// they were made before.
    ///
    /// # Errors
    /// As [`Group::create`]. Where control groups are of version 2, that is everywhere but in the first one: a group that has
    /// processes divides nothing.
    pub fn enter(name: &str) -> io::Result<Group> {
        let home = HOME.get_or_init(places_of_this_process);
        let of_processors = home.iter().find(|place| place.controller == Controller::Processors);
        let home = of_processors.ok_or(io::ErrorKind::Unsupported)?;
        let mut tries = ENTER_TRIES;
        loop {
            let group = Group { places: vec![home.make_below(name)?] };
            tries -= 1;
            match group.add(0) {
                // While nobody was in it, an engine that does not see this process may have removed it.
                Err(_) if tries > 0 => SystemClock.sleep(ENTER_PAUSE),
                added => return added.map(|()| group),
            }
        }
    }

    /// The group that this process is in, if its name begins like this.
    pub fn entered(prefix: &str) -> Option<Group> {
        let mut places = places_of_this_process();
        places.retain(|place| {
            let name = place.dir.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(prefix)
        });
        (!places.is_empty()).then_some(Group { places })
    }

    /// Takes this process out of a group that it has entered, or the process that has started it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn leave(&self) -> io::Result<()> {
        let mut homes = self.places.iter().filter_map(|place| place.dir.parent());
        homes.try_for_each(|home| std::fs::write(home.join("cgroup.procs"), "0"))
    }

    /// The group `name` as [`Group::create`] would make it, without making it.
    pub fn find(name: &str) -> Option<Group> {
        let own = homes().into_iter();
        let below = own.map(|place| Place { dir: place.dir.join(name), ..place });
        let places: Vec<Place> = below.filter(|place| place.dir.is_dir()).collect();
        (!places.is_empty()).then_some(Group { places })
    }

    /// The group that a process is in, if its name is one of those wanted. Never this process's own.
    pub fn holding(pid: i32, wanted: impl Fn(&str) -> bool) -> Option<Group> {
        let own = homes();
        let mut places = places_of(&pid.to_string(), Controller::is_of_version_one);
        places.retain(|place| {
            let name = place.dir.file_name().unwrap_or_default().to_string_lossy();
            wanted(&name) && !own.contains(place)
        });
        (!places.is_empty()).then_some(Group { places })
    }

    /// Limits the memory of all its processes together, in bytes.
    ///
    /// # Errors
    /// `Unsupported` where it cannot be limited, otherwise what the operating system says.
    pub fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        self.limit(Controller::Memory, bytes)
    }

    /// Limits how many processes, threads included, may be in it. Those above stay; there are no new ones.
    ///
    /// # Errors
    /// `Unsupported` where they cannot be limited, otherwise what the operating system says.
    pub fn limit_processes(&self, count: u64) -> io::Result<()> {
        self.limit(Controller::Processes, count)
    }

    /// Gives all its processes together as much of the processors as each other group has, where there is
    /// not enough for all, however many they are. Something of each tenth of a second is left to the others: by weights
    /// alone, Linux 6.18 keeps them waiting for seconds while processes of one group do little but wake each other.
    ///
    /// # Errors
    /// `Unsupported` where they cannot be shared, otherwise what the operating system says.
    pub fn share_processors(&self) -> io::Result<()> {
        self.weigh_processors(100)
    }

    /// The same, but this much of what each other group has, in percent.
    ///
    /// # Errors
    /// As [`Group::share_processors`].
    pub fn weigh_processors(&self, percent: u64) -> io::Result<()> {
        let place = self.place(Controller::Processors)?;
        // A kernel without such limits has the weights.
        let _ = place.leave_processors();
        self.limit(Controller::Processors, place.version.usual_weight() * percent / 100)
    }

    /// How much of the usual share of the processors it has, in percent.
    ///
    /// # Errors
    /// As [`Group::share_processors`].
    pub fn processor_share(&self) -> io::Result<u64> {
        let place = self.place(Controller::Processors)?;
        let file = place.dir.join(Controller::Processors.limit_file(place.version));
        let weight: u64 =
            std::fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)?;
        Ok(weight * 100 / place.version.usual_weight())
    }

    /// How many of its processes run, or wait for a processor, a disk or each other.
    ///
    /// # Errors
    /// As [`Group::share_processors`].
    pub fn processes_at_work(&self) -> io::Result<usize> {
        let place = self.place(Controller::Processors)?;
        let processes = std::fs::read_to_string(place.dir.join("cgroup.procs"))?;
        let numbers = processes.lines().filter_map(|pid| pid.trim().parse().ok());
        Ok(numbers.filter(|pid| is_at_work(*pid)).count())
    }

    fn limit(&self, controller: Controller, limit: u64) -> io::Result<()> {
        let place = self.place(controller)?;
        std::fs::write(place.dir.join(controller.limit_file(place.version)), limit.to_string())
    }

    fn place(&self, controller: Controller) -> io::Result<&Place> {
        self.places.iter().find(|place| place.controller == controller).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                format!("there is no controller '{}' for it", controller.name()),
            )
        })
    }

    /// Moves a process into the group; its later children are in it too.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        self.places
            .iter()
            .try_for_each(|place| std::fs::write(place.dir.join("cgroup.procs"), pid.to_string()))
    }

    /// Makes the kernel end a process of the group instead of moving its memory to swap space.
    ///
    /// # Errors
    /// The operating system's error; `NotFound` if it has no swap space.
    pub fn forbid_swap(&self) -> io::Result<()> {
        let set = |file: &str| std::fs::write(self.memory()?.join(file), "0");
        // Version 1 has a file for it only with swap accounting; with a swappiness of 0 it does not
        // swap.
        set("memory.swap.max").or_else(|_| set("memory.swappiness"))
    }

    /// Whether the memory of its processes is limited by itself, not only by groups above it.
    pub fn limits_memory(&self) -> bool {
        let read = |file: &str| std::fs::read_to_string(self.memory()?.join(file));
        let limit = read("memory.max").or_else(|_| read("memory.limit_in_bytes"));
        // Without a limit, version 2 says `max` and version 1 some number that no host has.
        limit.is_ok_and(|text| text.trim().parse::<u64>().is_ok_and(|bytes| bytes < UNLIMITED))
    }

    /// Processes that the kernel has ended in the group for lack of memory.
    ///
    /// # Errors
    /// The operating system's error; `NotFound` if it does not count them.
    pub fn killed(&self) -> io::Result<u64> {
        let v2 = std::fs::read_to_string(self.memory()?.join("memory.events"));
        let text =
            v2.or_else(|_| std::fs::read_to_string(self.memory()?.join("memory.oom_control")))?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn memory(&self) -> io::Result<&Path> {
        let place = self.place(Controller::Memory).ok();
        place.map(|place| place.dir.as_path()).ok_or(io::ErrorKind::NotFound.into())
    }

    /// Removes the group, which must be empty, with the empty groups that a killed process made in it; being
    /// gone is no error.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove(&self) -> io::Result<()> {
        self.places.iter().try_for_each(|place| {
            remove_empty_in(&place.dir, |_| true);
            match std::fs::remove_dir(&place.dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        })
    }
}

impl Place {
    /// Another group for the same controller. Version 1 has a place of its own for each.
    fn moved_to(self, dir: &Path) -> Place {
        match self.version {
            Version::One => self,
            Version::Two => Place { dir: dir.to_owned(), ..self },
        }
    }

    /// Leaves some of each period to processes of other groups.
    fn leave_processors(&self) -> io::Result<()> {
        let processors = std::thread::available_parallelism()?.get() as u64;
        let most = processors * PERIOD_US / 100 * (100 - LEFT_PERCENT);
        match self.version {
            Version::One => std::fs::write(self.dir.join("cpu.cfs_quota_us"), most.to_string()),
            Version::Two => std::fs::write(self.dir.join("cpu.max"), format!("{most} {PERIOD_US}")),
        }
    }

    /// Makes the group `name` in this one.
    fn make_below(&self, name: &str) -> io::Result<Place> {
        if self.version == Version::Two {
            // It delegates a controller only if asked.
            let wanted = format!("+{}", self.controller.name());
            std::fs::write(self.dir.join("cgroup.subtree_control"), wanted)?;
        }
        let dir = self.dir.join(name);
        match std::fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Place { dir, ..*self }),
        }
    }
}

/// Removes the empty groups of processes that are gone: their names begin like this, followed by the process that made them.
/// One that lives may be about to put another into its group, which then would have no limits.
pub fn remove_left(prefix: &str) {
    let is_left = |name: &str| {
        let maker = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next());
        let maker = maker.and_then(|maker| maker.parse().ok());
        maker.is_some_and(|maker| ProcessId::of(maker).is_none_or(|maker| maker.is_dying()))
    };
    for own in homes() {
        remove_empty_in(&own.dir, is_left);
    }
}

fn remove_empty_in(group: &Path, wanted: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        let is_group = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_group && wanted(&entry.file_name().to_string_lossy()) {
            // The kernel refuses where processes are.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Where this process was before it entered a group of its own.
static HOME: OnceLock<Vec<Place>> = OnceLock::new();

fn places_of_this_process() -> Vec<Place> {
    places_of("self", Controller::is_of_version_one)
}

/// The groups that others are made in, for each controller.
fn homes() -> Vec<Place> {
    let own = HOME.get().cloned().unwrap_or_else(places_of_this_process).into_iter();
    let given = Path::new(ROOT).join(FOR_SERVERS);
    let may = rustix::fs::access(given.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok();
    own.map(|place| if may { place.moved_to(&given) } else { place }).collect()
}

/// Where a process is, for each controller.
fn places_of(process: &str, has_v1: impl Fn(Controller) -> bool) -> Vec<Place> {
    let text = std::fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let places = CONTROLLERS.into_iter().filter_map(|one| place_in(&text, one, has_v1(one)));
    places.collect()
}

/// Where a process is for one controller, by its `/proc/PID/cgroup`.
fn place_in(text: &str, controller: Controller, has_v1: bool) -> Option<Place> {
    let mut unified = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        if has_v1 && controllers.split(',').any(|one| one == controller.name()) {
            let dir = Path::new(ROOT).join(controller.name()).join(path);
            return Some(Place { controller, version: Version::One, dir });
        }
        if controllers.is_empty() {
            let dir = Path::new(ROOT).join(path);
            unified = Some(Place { controller, version: Version::Two, dir });
        }
    }
    unified.filter(|_| !has_v1)
}

#[cfg(test)]
mod tests;
