//! How long processes stand still for want of memory (PSI): what the kernel says of a control group of version 2.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::memory_bounds::Mount;

/// The pressure on a control group.
#[derive(Debug)]
pub struct MemoryPressure {
    file: File,
    path: PathBuf,
}

impl MemoryPressure {
    /// That of this process's group; of the root group, that of the whole machine.
    ///
    /// # Errors
    /// No group of version 2 is mounted, or the kernel keeps no account of pressure.
    pub fn of_this_process() -> io::Result<Self> {
        Self::of(Path::new("/proc/self"))
    }

    /// That of the group of a process, whose files in /proc are in `process`.
    fn of(process: &Path) -> io::Result<Self> {
        let memberships = fs::read_to_string(process.join("cgroup"))?;
        let mounts = fs::read_to_string(process.join("mountinfo"))?;
        let groups = mounts.lines().filter_map(Mount::parse).filter(Mount::is_of_version_two);
        let mut paths = groups.filter_map(|mount| mount.group(&memberships));
        let why = "no control group of version 2 is mounted";
        let group = paths.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, why))?;
        let path = group.join("memory.pressure");
        let opened = File::open(&path).map(|file| Self { file, path: path.clone() });
        // Read once: where pressure is compiled in and switched off, only reading fails.
        let read = opened.and_then(|opened| opened.stalled_us().map(|_| opened));
        read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// For how many microseconds at least one task has stood still for want of memory, since the group was made.
    ///
    /// # Errors
    /// The group is gone, or its file says something else.
    pub fn stalled_us(&self) -> io::Result<u64> {
        let mut text = [0; LINES_BYTES_MAX];
        let len = self.file.read_at(&mut text, 0)?;
        let total = std::str::from_utf8(&text[..len]).ok().and_then(total_of_some);
        total.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The file that says it.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// From `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, the first line.
fn total_of_some(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Two lines of at most 20 digits and three averages.
const LINES_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// A process in a group with this file of pressure.
    fn pressure(mounted: &str, text: &str) -> io::Result<u64> {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().to_str().unwrap();
        fs::write(dir.path().join("cgroup"), "4:memory:/other\n0::/a/b\n").unwrap();
        let mount = format!("30 23 0:26 / {base}/sys rw - {mounted} x rw,memory\n");
        fs::write(dir.path().join("mountinfo"), mount).unwrap();
        fs::create_dir_all(dir.path().join("sys/a/b")).unwrap();
        fs::write(dir.path().join("sys/a/b/memory.pressure"), text).unwrap();
        MemoryPressure::of(dir.path())?.stalled_us()
    }

    #[test]
    fn the_time_lost_is_that_of_any_task() {
        let text = "some avg10=1.44 avg60=1.60 avg300=1.83 total=56294260\n\
                    full avg10=0.58 avg60=0.54 avg300=0.97 total=40937660\n";
        assert_eq!(pressure("cgroup2", text).unwrap(), 56_294_260);
        for wrong in ["", "some", "some avg10=0.00 total=x", "full avg10=0.00 total=1\n"] {
            assert_eq!(pressure("cgroup2", wrong).unwrap_err().kind(), io::ErrorKind::InvalidData, "{wrong}");
        }
    }

    #[test]
    fn version_one_has_none() {
        let error = pressure("cgroup", "some avg10=0.00 total=1\n").unwrap_err();
        assert!(error.to_string().contains("no control group of version 2"), "{error}");
    }
}
