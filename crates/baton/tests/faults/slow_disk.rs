//! A file system on a disk of its own, from which a server reads as slowly as a test wants.
//!
//! The image is mounted by a loop device. What the test puts in it is in no memory before the server reads it, and the bound
//! of the server's control group holds for this device alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{major, minor, stat};

use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::server::Server;

/// The disk below a server's document root, and the control group of the server. Both end with it.
pub(crate) struct SlowDisk {
    root: PathBuf,
    /// `MAJOR:MINOR` of its device.
    device: String,
    group: PathBuf,
    version: Version,
}

/// The two interfaces of control groups.
#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

impl SlowDisk {
    /// Mounts a disk with these files as the document root of `folder`. `None`: this system does not let us, which is said.
    pub(crate) fn mount(folder: &Folder, files: &[(&str, &[u8])]) -> Option<Self> {
        Self::try_mount(folder, files).map_err(|why| leave_out("a slow disk", &why.to_string())).ok()
    }

    fn try_mount(folder: &Folder, files: &[(&str, &[u8])]) -> io::Result<Self> {
        let (tree, image, root) = (folder.base().join("tree"), folder.base().join("disk.img"), folder.root());
        fs::create_dir(&tree)?;
        for (name, content) in files {
            fs::write(tree.join(name), content)?;
        }
        fs::File::create(&image)?.set_len(IMAGE_BYTES)?;
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0", "-O", "^has_journal", "-d"])
            .args([&tree, &image]))?;
        run(Command::new("mount").args(["-o", "loop,ro"]).args([&image, &root]))?;
        let mounted = Mounted(&root);
        let number = stat(&root)?.st_dev;
        let device = format!("{}:{}", major(number), minor(number));
        let (group, version) = make_group(folder)?;
        std::mem::forget(mounted);
        Ok(Self { root, device, group, version })
    }

    /// From now on the server's reads are so slow that no file comes while a test runs.
    pub(crate) fn stall(&self, server: &Server) {
        for process in std::iter::once(server.pid()).chain(server.workers()) {
            fs::write(self.group.join("cgroup.procs"), process.as_raw_nonzero().to_string())
                .expect("its group");
        }
        self.bound(Some(STALLED_BYTES_PER_SECOND));
    }

    /// From now on they are not bounded, and those that wait go on.
    pub(crate) fn release(&self) {
        self.bound(None);
    }

    fn bound(&self, bytes_per_second: Option<u64>) {
        let (file, none) = match self.version {
            Version::One => ("blkio.throttle.read_bps_device", "0"),
            Version::Two => ("io.max", "max"),
        };
        let bound = bytes_per_second.map_or(none.to_owned(), |bound| bound.to_string());
        let line = match self.version {
            Version::One => format!("{} {bound}", self.device),
            Version::Two => format!("{} rbps={bound}", self.device),
        };
        fs::write(self.group.join(file), line).expect("a bound");
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.release();
        // The server may still be there.
        unmount(&self.root);
        let _ = fs::remove_dir(&self.group);
    }
}

/// Whether a thread of the server waits for a disk.
pub(crate) fn waits_for_disk(server: &Server) -> bool {
    server.workers().into_iter().any(|worker| {
        let tasks = fs::read_dir(format!("/proc/{}/task", worker.as_raw_nonzero()));
        tasks.into_iter().flatten().flatten().any(|task| state_of(&task.path()) == Some('D'))
    })
}

/// The letter for what a thread does; `D`: it waits for a disk.
fn state_of(task: &Path) -> Option<char> {
    let text = fs::read_to_string(task.join("stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

/// Takes a file system away unless it is forgotten.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        unmount(self.0);
    }
}

fn unmount(root: &Path) {
    let _ = Command::new("umount").arg("--lazy").arg(root).status();
}

/// A control group that can bound reads, by the folder's name.
fn make_group(folder: &Folder) -> io::Result<(PathBuf, Version)> {
    let name = format!("baton-test{}", folder.base().file_name().unwrap_or_default().display());
    let (one, two) = (Path::new("/sys/fs/cgroup/blkio"), Path::new("/sys/fs/cgroup"));
    let (group, version) = if one.is_dir() {
        (one.join(name), Version::One)
    } else {
        fs::write(two.join("cgroup.subtree_control"), "+io")?;
        (two.join(name), Version::Two)
    };
    fs::create_dir(&group)?;
    Ok((group, version))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{command:?}: {}", said.trim())))
    }
}

/// Most of it is a hole.
const IMAGE_BYTES: u64 = 32 << 20;

/// A page takes four seconds, and the kernel reads many at a time.
const STALLED_BYTES_PER_SECOND: u64 = 1 << 10;
