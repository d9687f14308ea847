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

/// Makes control groups and takes all of them away when it is dropped, or when the user interrupts.
#[derive(Debug)]
pub(crate) struct Groups {
    hierarchy: Hierarchy,
    made: Arc<Mutex<Vec<PathBuf>>>,
}

/// Where the kernel shows its control groups.
#[derive(Debug)]
enum Hierarchy {
    V1 { memory: PathBuf, block: PathBuf },
    V2(PathBuf),
}

/// Bounds of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Memory of its processes, and of the pages that they brought into the page cache.
    pub(crate) memory_bytes: u64,
    /// Device as `major`, `minor`.
    pub(crate) device: (u32, u32),
    pub(crate) read_bytes_per_s: u64,
}

impl Groups {
    /// Finds the hierarchies. From now on SIGINT and SIGTERM remove the groups before they end the process. Call it
    /// before starting threads, which inherit the signal mask.
    ///
    /// # Errors
    /// If the kernel has no memory and block controllers.
    pub(crate) fn new() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
        let hierarchy = Hierarchy::find(&mounts).context(
            "no control groups for memory and block devices are mounted: a server cannot be bounded",
        )?;
        if let Hierarchy::V2(root) = &hierarchy {
            fs::write(root.join("cgroup.subtree_control"), "+memory +io")
                .context("the root control group does not give memory and io to its children")?;
        }
        let made = Arc::new(Mutex::new(Vec::new()));
        let signals: SigSet = [Blocked::SIGINT, Blocked::SIGTERM, Blocked::SIGHUP].into_iter().collect();
        signals.thread_block().context("blocking signals")?;
        let to_remove = Arc::clone(&made);
        std::thread::spawn(move || {
            let signal = signals.wait();
            remove_all(&to_remove);
            std::process::exit(128 + signal.map_or(0, |signal| signal as i32));
        });
        Ok(Self { hierarchy, made })
    }

    /// A new group; returns the folders that a process has to enter.
    ///
    /// # Errors
    /// The kernel's error, with the name of the file.
    pub(crate) fn make(&self, name: &str, bounds: &Bounds) -> Result<Vec<PathBuf>> {
        let name = format!("baton-lab-{}-{name}", std::process::id());
        let (major, minor) = bounds.device;
        let rate = bounds.read_bytes_per_s;
        let memory = bounds.memory_bytes.to_string();
        match &self.hierarchy {
            Hierarchy::V1 { memory: memory_root, block } => {
                let memory_group = self.make_one(&memory_root.join(&name))?;
                set(&memory_group, "memory.limit_in_bytes", &memory)?;
                let block_group = self.make_one(&block.join(&name))?;
                set(&block_group, "blkio.throttle.read_bps_device", &format!("{major}:{minor} {rate}"))?;
                Ok(vec![memory_group, block_group])
            }
            Hierarchy::V2(root) => {
                let group = self.make_one(&root.join(&name))?;
                set(&group, "memory.max", &memory)?;
                set(&group, "io.max", &format!("{major}:{minor} rbps={rate}"))?;
                Ok(vec![group])
            }
        }
    }

    fn make_one(&self, folder: &Path) -> Result<PathBuf> {
        fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        lock(&self.made).push(folder.to_owned());
        Ok(folder.to_owned())
    }

    /// How often the kernel killed a process of these groups for want of memory.
    pub(crate) fn out_of_memory(groups: &[PathBuf]) -> u64 {
        let files = ["memory.oom_control", "memory.events"];
        let texts = groups.iter().flat_map(|group| files.map(|file| fs::read_to_string(group.join(file))));
        let kills = texts.flatten().filter_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
        });
        kills.sum()
    }
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
            (Some(memory), Some(block)) => Some(Self::V1 { memory, block }),
            _ => place("cgroup2", "").map(Self::V2),
        }
    }
}

fn set(group: &Path, file: &str, value: &str) -> Result<()> {
    let path = group.join(file);
    fs::write(&path, value).with_context(|| format!("{value} > {}", path.display()))
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
        let Some(Hierarchy::V1 { memory, block }) = Hierarchy::find(mounts) else { panic!("not found") };
        assert_eq!((memory, block), ("/sys/fs/cgroup/memory".into(), "/sys/fs/cgroup/blkio".into()));
    }

    #[test]
    fn version_2_is_found_where_version_1_is_not() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert!(
            matches!(Hierarchy::find(mounts), Some(Hierarchy::V2(root)) if root == Path::new("/sys/fs/cgroup"))
        );
        assert!(Hierarchy::find("proc /proc proc rw 0 0\n").is_none());
    }
}
