//! How much memory this process may use: what its control groups, its own limits and the machine allow.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// The three bounds on a process's memory; all apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// Memory of the machine, in bytes.
    pub machine_bytes: u64,
    /// The tightest bound among the control groups that the process is in, if one of them is tighter than the machine.
    /// Its processes share it, and the page cache that they fill is counted.
    pub group: Option<GroupBound>,
    /// Addresses that the process may use (`RLIMIT_AS`), in bytes, if they are limited. Each process has its own.
    pub address_space_bytes: Option<u64>,
}

/// The limit of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBound {
    /// In bytes.
    pub bytes: u64,
    /// The file that contains it.
    pub file: PathBuf,
}

impl MemoryBounds {
    /// The bounds of this process. What cannot be read does not bound.
    pub fn of_this_process() -> Self {
        let system = rustix::system::sysinfo();
        let machine_bytes = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit));
        Self {
            machine_bytes,
            group: tightest(Path::new("/proc/self"))
                .ok()
                .flatten()
                .filter(|group| group.bytes < machine_bytes),
            address_space_bytes: getrlimit(Resource::As).current,
        }
    }
}

/// The tightest bound of memory among the control groups of a process, whose files in /proc are in `process`.
fn tightest(process: &Path) -> io::Result<Option<GroupBound>> {
    let memberships = fs::read_to_string(process.join("cgroup"))?;
    let mounts = fs::read_to_string(process.join("mountinfo"))?;
    let bounds = mounts.lines().filter_map(Mount::parse).filter_map(|mount| mount.tightest(&memberships));
    Ok(bounds.min_by_key(|bound| bound.bytes))
}

/// A hierarchy of control groups that has memory among its controllers, or may have: one of version 1, or the one of
/// version 2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    version: Version,
    /// Which group of the hierarchy is mounted: in a container often not the root.
    root: PathBuf,
    /// Where.
    at: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    /// The limit files of a group. Beyond `memory.high` the kernel kills no process, but slows the group down.
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::One => &["memory.limit_in_bytes"],
            Self::Two => &["memory.max", "memory.high"],
        }
    }
}

impl Mount {
    /// From a line of `mountinfo`: number, parent, device, root, place, options, any number of tags, `-`, type, source,
    /// options of the file system (proc_pid_mountinfo(5)).
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let system: Vec<&str> = system.split(' ').collect();
        let version = match *system.first()? {
            "cgroup2" => Version::Two,
            "cgroup" if system.get(2)?.split(',').any(|option| option == "memory") => Version::One,
            _ => return None,
        };
        Some(Self { version, root: unescaped(mount.get(3)?), at: unescaped(mount.get(4)?) })
    }

    pub(crate) fn is_of_version_two(&self) -> bool {
        self.version == Version::Two
    }

    /// Where the group of a process is.
    pub(crate) fn group(&self, memberships: &str) -> Option<PathBuf> {
        let path = memberships.lines().find_map(|line| self.path_in(line))?;
        // Outside of the mount: the mounted group is the closest visible one.
        let below = Path::new(path).strip_prefix(&self.root).unwrap_or(Path::new(""));
        Some(self.at.join(below))
    }

    /// The tightest bound from the group of a process up to the topmost visible one.
    fn tightest(&self, memberships: &str) -> Option<GroupBound> {
        let group = self.group(memberships)?;
        let groups = group.ancestors().take_while(|group| group.starts_with(&self.at));
        let files = groups.flat_map(|group| self.version.files().iter().map(move |name| group.join(name)));
        files
            .filter_map(|file| Some(GroupBound { bytes: read_number(&file)?, file }))
            .min_by_key(|bound| bound.bytes)
    }

    /// The group of a process in this hierarchy, from a line of `cgroup`: a number, controllers, the path
    /// (cgroups(7)). Version 2 has number 0 and names no controllers.
    fn path_in<'a>(&self, line: &'a str) -> Option<&'a str> {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = match self.version {
            Version::One => controllers.split(',').any(|controller| controller == "memory"),
            Version::Two => number == "0" && controllers.is_empty(),
        };
        is_it.then_some(path)
    }
}

/// The number in a file; nothing if there is none, as in `max`.
fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A path of `mountinfo`, which writes blanks and backslashes as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(char::from(byte));
                path.push_str(&part[3..]);
            }
            None => {
                path.push('\\');
                path.push_str(part);
            }
        }
    }
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process, by the two files that say where its control groups are, and the files of these groups.
    fn bound(cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> Option<(u64, String)> {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().to_str().unwrap();
        fs::write(dir.path().join("cgroup"), cgroup).unwrap();
        fs::write(dir.path().join("mountinfo"), mountinfo.replace("BASE", base)).unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let bound = tightest(dir.path()).unwrap()?;
        Some((bound.bytes, bound.file.strip_prefix(base).unwrap().to_str().unwrap().to_owned()))
    }

    const V2: &str = "30 23 0:26 / BASE/sys rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_tightest_of_a_group_and_its_parents_counts() {
        let membership = "0::/system.slice/baton.service\n";
        let files = |own: &str, high: &str, slice: &str| {
            bound(
                membership,
                V2,
                &[
                    ("sys/system.slice/baton.service/memory.max", own),
                    ("sys/system.slice/baton.service/memory.high", high),
                    ("sys/system.slice/memory.max", slice),
                ],
            )
        };
        let own = "sys/system.slice/baton.service/memory.max".to_owned();
        assert_eq!(files("1000\n", "max\n", "2000\n"), Some((1000, own)));
        assert_eq!(files("1000\n", "max\n", "700\n"), Some((700, "sys/system.slice/memory.max".into())));
        assert_eq!(files("1000\n", "500\n", "max\n").unwrap().0, 500);
        assert_eq!(files("max\n", "max\n", "max\n"), None);
    }

    /// As in a container whose group is mounted as if it were the root, while its path is the one on the host.
    #[test]
    fn version_one_in_a_container() {
        let cgroup = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n";
        let mountinfo = "40 31 0:33 /docker/abc BASE/cpu ro - cgroup cgroup rw,cpu,cpuacct\n\
                         41 31 0:32 /docker/abc BASE/with\\040blank ro - cgroup cgroup rw,memory\n";
        let files = [("with blank/memory.limit_in_bytes", "4096\n"), ("cpu/memory.limit_in_bytes", "1\n")];
        let file = "with blank/memory.limit_in_bytes".to_owned();
        assert_eq!(bound(cgroup, mountinfo, &files), Some((4096, file)));
    }

    /// As in a name space whose root is below the group of the process, or beside it.
    #[test]
    fn an_invisible_group_is_bounded_by_the_visible_one() {
        let files = [("sys/memory.max", "77\n")];
        assert_eq!(bound("0::/../outside\n", V2, &files).unwrap().0, 77);
        let elsewhere = V2.replace("0:26 / ", "0:26 /inner ");
        assert_eq!(bound("0::/outer\n", &elsewhere, &files).unwrap().0, 77);
    }

    #[test]
    fn hierarchies_beside_each_other_count_together() {
        let cgroup = "4:memory:/a\n0::/b\n";
        let mountinfo = format!("{V2}31 23 0:32 / BASE/memory rw - cgroup cgroup rw,memory\n");
        let files =
            [("memory/a/memory.limit_in_bytes", "9223372036854771712\n"), ("sys/b/memory.max", "5\n")];
        assert_eq!(bound(cgroup, &mountinfo, &files).unwrap().0, 5);
    }

    #[test]
    fn this_process_has_bounds() {
        let bounds = MemoryBounds::of_this_process();
        let total = fs::read_to_string("/proc/meminfo").unwrap();
        let kilobytes = total.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
        let kilobytes: u64 = kilobytes.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        assert_eq!(bounds.machine_bytes / 1024, kilobytes);
        assert!(bounds.group.is_none_or(|group| group.bytes < bounds.machine_bytes));
    }
}
