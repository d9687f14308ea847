//! Control groups of the tests: one that bounds memory, and one in which the kernel keeps an account of pressure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::server::wait_until;

/// A control group that bounds memory, below the one of this process; gone when it is dropped.
pub(crate) struct Group(PathBuf);

impl Group {
    /// `None` if there are none, or if this user may not make any.
    pub(crate) fn make(bytes: u64) -> Option<Self> {
        let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
        let one =
            mounts.iter().find(|mount| mount[2] == "cgroup" && mount[3].split(',').any(|o| o == "memory"));
        let two = mounts.iter().find(|mount| mount[2] == "cgroup2");
        let (mount, field, limit) = match (one, two) {
            (Some(one), _) => (one[1], "memory", "memory.limit_in_bytes"),
            (None, Some(two)) => (two[1], "", "memory.max"),
            (None, None) => return None,
        };
        let of_this = memberships.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|controller| controller == field).then_some(path)
        })?;
        let parent = Some(Path::new(mount).join(of_this.trim_start_matches('/')));
        let parent = parent.filter(|parent| parent.is_dir()).unwrap_or(mount.into());
        // Version 2 has files for memory only where the parent enables them, and such a parent has no processes.
        let parent = [parent, mount.into()].into_iter().find(|parent| {
            field == "memory"
                || fs::read_to_string(parent.join("cgroup.subtree_control"))
                    .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
        })?;
        // Tests of one process run side by side, those of several processes too.
        let name = format!("baton-test-{}-{:?}", std::process::id(), std::thread::current().id());
        fs::create_dir(parent.join(&name)).ok()?;
        let group = Self(parent.join(name));
        fs::write(group.0.join(limit), bytes.to_string()).ok()?;
        Some(group)
    }

    /// Its folder, with the file that takes processes in.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// How many processes the kernel has killed in it.
    pub(crate) fn kills(&self) -> u64 {
        let text = ["memory.oom_control", "memory.events"]
            .iter()
            .find_map(|name| fs::read_to_string(self.0.join(name)).ok())
            .expect("a count of kills");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.expect("a count of kills").trim().parse().expect("a number")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The server is gone, but the kernel may take a moment to see that.
        wait_until("the control group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

/// A control group of version 2 with an account of pressure, in a hierarchy that is mounted for it: where version 1 bounds
/// memory, there usually is none.
pub(crate) struct WatchedGroup {
    mount: PathBuf,
    folder: PathBuf,
}

impl WatchedGroup {
    /// `None` if this user may not mount the hierarchy, or if the kernel keeps no account.
    pub(crate) fn make(mount: PathBuf) -> Option<Self> {
        fs::create_dir(&mount).ok()?;
        let mounted = Command::new("mount").args(["-t", "cgroup2", "none"]).arg(&mount).output().ok()?;
        let folder = mount.join(format!("baton-test-{}", std::process::id()));
        let group = mounted.status.success().then_some(Self { mount, folder })?;
        fs::create_dir(&group.folder).ok()?;
        fs::read(group.folder.join("memory.pressure")).ok()?;
        Some(group)
    }

    /// Its folder, with the file that takes processes in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        wait_until("the watched group is empty", || {
            !self.folder.exists() || fs::remove_dir(&self.folder).is_ok()
        });
        let _ = Command::new("umount").arg(&self.mount).output();
    }
}
