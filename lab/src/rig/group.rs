//! Control groups that bound a server's memory, page cache included, and the rate of its reads.
//!
//! Supports version 1, with separate hierarchies for memory and block devices, and version 2, with one group for
//! both.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Pid, Signal, kill_process};

use super::{PREFIX, maker_of, network};

/// Makes control groups and takes all of them away when it is dropped, or when the user interrupts.
#[derive(Debug)]
pub(crate) struct Groups {
    hierarchy: Hierarchy,
    made: Arc<Mutex<Vec<PathBuf>>>,
}

/// Where the kernel shows its control groups: version 2 has one folder for all controllers.
#[derive(Debug, PartialEq)]
struct Hierarchy {
    is_v2: bool,
    memory: PathBuf,
    block: PathBuf,
    cpu: Option<PathBuf>,
}

/// A bound of disk or CPU that can be lifted for a while.
#[derive(Debug)]
pub(super) struct Throttle {
    file: PathBuf,
    bound: String,
    lifted: String,
}

impl Throttle {
    /// Bounds it, or lets all of it be used until it is bound again.
    ///
    /// # Errors
    /// The kernel's error, with the name of the file.
    pub(super) fn set(&self, is_bound: bool) -> Result<()> {
        set(&self.file, if is_bound { &self.bound } else { &self.lifted })
    }
}

/// How much may be read from a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskBound {
    /// Device as `major`, `minor`.
    pub(crate) device: (u32, u32),
    pub(crate) read_bytes_per_s: u64,
}

impl Groups {
    /// Finds the hierarchies. From now on SIGINT and SIGTERM remove the groups, and the hosts of this process, before they
    /// end it. Call it before starting threads, which inherit the signal mask.
    ///
    /// # Errors
    /// If the kernel has no memory and block controllers.
    pub(crate) fn new() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
        let hierarchy = Hierarchy::find(&mounts).context(
            "no control groups for memory and block devices are mounted: a server cannot be bounded",
        )?;
        if hierarchy.is_v2 {
            fs::write(hierarchy.memory.join("cgroup.subtree_control"), "+memory +io +cpu")
                .context("the root control group does not give memory, io and cpu to its children")?;
        }
        hierarchy.remove_leftovers();
        let made = Arc::new(Mutex::new(Vec::new()));
        let signals: SigSet = [Blocked::SIGINT, Blocked::SIGTERM, Blocked::SIGHUP].into_iter().collect();
        signals.thread_block().context("blocking signals")?;
        let to_remove = Arc::clone(&made);
        std::thread::spawn(move || {
            let signal = signals.wait();
            remove_all(&to_remove);
            network::remove_own();
            std::process::exit(128 + signal.map_or(0, |signal| signal as i32));
        });
        Ok(Self { hierarchy, made })
    }

    /// A new group, or one in each hierarchy: what a process has to enter, and bounds that can be lifted. Memory counts with the
    /// pages that its processes brought into the page cache; `cpus` is the part of one CPU that they may use together; what is
    /// missing is unbounded.
    ///
    /// # Errors
    /// The kernel's error, with the name of the file.
    pub(super) fn make(
        &self,
        name: &str,
        memory_bytes: Option<u64>,
        disk: Option<DiskBound>,
        cpus: Option<f64>,
    ) -> Result<(Vec<PathBuf>, Vec<Throttle>)> {
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        let (mut folders, mut throttles) = (Vec::new(), Vec::new());
        let mut enter = |root: &Path| -> Result<PathBuf> {
            let folder = root.join(&name);
            if !folders.contains(&folder) {
                fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
                lock(&self.made).push(folder.clone());
                folders.push(folder.clone());
            }
            Ok(folder)
        };
        let Hierarchy { is_v2, memory, block, cpu } = &self.hierarchy;
        let folder = enter(memory)?;
        if let Some(bytes) = memory_bytes {
            let file = if *is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
            set(&folder.join(file), &bytes.to_string())?;
        }
        if let Some(DiskBound { device: (major, minor), read_bytes_per_s: rate }) = disk {
            let folder = enter(block)?;
            let (file, bound, lifted) = match is_v2 {
                true => ("io.max", format!("rbps={rate}"), "rbps=max"),
                false => ("blkio.throttle.read_bps_device", rate.to_string(), "0"),
            };
            let [bound, lifted] = [&*bound, lifted].map(|rate| format!("{major}:{minor} {rate}"));
            throttles.push(Throttle { file: folder.join(file), bound, lifted });
        }
        if let Some(cpus) = cpus {
            let folder = enter(cpu.as_ref().context("no control groups for CPU time are mounted")?)?;
            let (quota, period) = quota_us(cpus);
            let (file, bound, lifted) = if *is_v2 {
                set(&folder.join("cpu.weight"), CPU_WEIGHT_V2)?;
                ("cpu.max", format!("{quota} {period}"), format!("max {period}"))
            } else {
                set(&folder.join("cpu.cfs_period_us"), &period.to_string())?;
                set(&folder.join("cpu.shares"), CPU_SHARES_V1)?;
                ("cpu.cfs_quota_us", quota.to_string(), "-1".to_owned())
            };
            throttles.push(Throttle { file: folder.join(file), bound, lifted });
        }
        throttles.iter().try_for_each(|throttle: &Throttle| throttle.set(true))?;
        Ok((folders, throttles))
    }

    /// Takes groups away whose processes have ended, or ends them.
    ///
    /// # Errors
    /// If a process does not end.
    pub(crate) fn remove(&self, groups: &[PathBuf]) -> Result<()> {
        for group in groups {
            remove(group).with_context(|| group.display().to_string())?;
            lock(&self.made).retain(|made| made != group);
        }
        Ok(())
    }

    /// Bytes of files that these groups have in the page cache.
    pub(crate) fn file_bytes(groups: &[PathBuf]) -> u64 {
        let value = |name| sum(groups, "memory.stat", name);
        value("active_file") + value("inactive_file")
    }
}

/// The sum of a value in files of this name, which not all groups have.
pub(super) fn sum(groups: &[PathBuf], file: &str, name: &str) -> u64 {
    let texts = groups.iter().filter_map(|group| fs::read_to_string(group.join(file)).ok());
    let values = texts.filter_map(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse::<u64>().ok())
    });
    values.sum()
}

impl Drop for Groups {
    fn drop(&mut self) {
        remove_all(&self.made);
    }
}

impl Hierarchy {
    /// From the text of `/proc/self/mounts`. Version 2 is only of use where version 1 has not taken the controllers.
    fn find(mounts: &str) -> Option<Self> {
        let mounted: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
        let place = |kind: &str, option: &str| {
            let mount = mounted.iter().find(|fields| {
                fields.get(2) == Some(&kind)
                    && fields
                        .get(3)
                        .is_some_and(|options| option.is_empty() || options.split(',').any(|o| o == option))
            })?;
            Some(PathBuf::from(mount[1]))
        };
        match (place("cgroup", "memory"), place("cgroup", "blkio")) {
            (Some(memory), Some(block)) => {
                Some(Self { is_v2: false, memory, block, cpu: place("cgroup", "cpu") })
            }
            _ => place("cgroup2", "").map(Self::of_version_2),
        }
    }

    fn of_version_2(root: PathBuf) -> Self {
        Self { is_v2: true, memory: root.clone(), block: root.clone(), cpu: Some(root) }
    }

    /// Removes the groups of labs that were killed.
    fn remove_leftovers(&self) {
        let roots = [&self.memory, &self.block].into_iter().chain(&self.cpu);
        for entry in roots.filter_map(|root| fs::read_dir(root).ok()).flatten().flatten() {
            let name = entry.file_name();
            let maker = name.to_str().and_then(maker_of);
            if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
                && let Err(error) = remove(&entry.path())
            {
                eprintln!("{}: {error:#}", entry.path().display());
            }
        }
    }
}

/// Quota and period for this part of a CPU. The kernel's least quota is a millisecond; a short period keeps pauses short.
fn quota_us(cpus: f64) -> (u64, u64) {
    let quota = (PERIOD_US as f64 * cpus) as u64;
    match quota < QUOTA_US_MIN {
        true => (QUOTA_US_MIN, (QUOTA_US_MIN as f64 / cpus.max(0.001)) as u64),
        false => (quota, PERIOD_US),
    }
}

fn set(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).with_context(|| format!("{value} > {}", file.display()))
}

/// Kills the processes in the groups, and removes the groups.
fn remove_all(made: &Mutex<Vec<PathBuf>>) {
    for group in lock(made).drain(..) {
        if let Err(error) = remove(&group) {
            eprintln!("{}: {error:#}", group.display());
        }
    }
}

fn remove(group: &Path) -> Result<()> {
    for _ in 0..REMOVE_TRIES {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            result => return Ok(result?),
        }
        let inside = fs::read_to_string(group.join("cgroup.procs"))?;
        for pid in inside.lines().filter_map(|line| line.parse().ok().and_then(Pid::from_raw)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        sleep(REMOVE_PAUSE);
    }
    bail!("its processes do not end");
}

fn lock(made: &Mutex<Vec<PathBuf>>) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

const PERIOD_US: u64 = 20_000;
const QUOTA_US_MIN: u64 = 1_000;
/// A group within its quota goes before other processes of the machine.
const CPU_SHARES_V1: &str = "100000";
const CPU_WEIGHT_V2: &str = "10000";
const REMOVE_TRIES: usize = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_found_by_controller() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
            cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
            cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let expected = Hierarchy {
            is_v2: false,
            memory: "/sys/fs/cgroup/memory".into(),
            block: "/sys/fs/cgroup/blkio".into(),
            cpu: Some("/sys/fs/cgroup/cpu,cpuacct".into()),
        };
        assert_eq!(Hierarchy::find(mounts), Some(expected));
    }

    #[test]
    fn only_groups_of_labs_have_a_maker() {
        assert_eq!(maker_of("baton-lab-12-0-node1"), Some("12"));
        assert_eq!(maker_of("baton-lab-x-0"), None);
        assert_eq!(maker_of("system.slice"), None);
    }

    #[test]
    fn a_small_part_of_a_cpu_has_a_longer_period() {
        assert_eq!(quota_us(0.5), (10_000, 20_000));
        assert_eq!(quota_us(0.04), (1_000, 25_000));
    }

    #[test]
    fn version_2_is_found_where_version_1_is_not() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(Hierarchy::find(mounts), Some(Hierarchy::of_version_2("/sys/fs/cgroup".into())));
        assert!(Hierarchy::find("proc /proc proc rw 0 0\n").is_none());
    }
}
