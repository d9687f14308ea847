//! The disk: one image in memory, and for each server a loop device and a file system mounted on it.
//!
//! The image is an anonymous file in memory, so that the throttle alone sets the speed of the "disk", and nothing is
//! left behind. Each server gets the same image through a device, and so a page cache, of its own: no server profits
//! from pages that another one has read, and all stay warm between their turns.
//!
//! Devices are detached as soon as they are mounted, which makes the kernel free them with the mount; mounts live in
//! a private mount namespace, which ends with the last process in it. So everything disappears when the lab ends in
//! any way.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{MemfdFlags, major, memfd_create, minor, stat};

use super::programs::run;

/// The image with its file system.
#[derive(Debug)]
pub(crate) struct Image {
    memory: OwnedFd,
}

/// A device of the image, mounted for reading.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) folder: PathBuf,
    /// Major and minor number.
    pub(crate) device: (u32, u32),
}

impl Image {
    /// A file system of `bytes` bytes with what `fill` writes into the folder that it is given.
    ///
    /// # Errors
    /// If one of the system's tools is missing or fails, or `fill` does.
    pub(crate) fn make(bytes: u64, folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS).context("a private mount namespace")?;
        run("mount", &["--make-rprivate", "/"])?;
        let memory = memfd_create("baton-lab-disk", MemfdFlags::CLOEXEC).context("memfd_create")?;
        rustix::fs::ftruncate(&memory, bytes).context("making room for the image")?;
        let image = Self { memory };
        let device = image.attach("--find")?;
        let made = run(
            "mkfs.ext4",
            &["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=0", &device],
        )
        .and_then(|_| mount(&device, folder, "rw"));
        detach(&device);
        made?;
        let filled = fill(folder);
        run("umount", &[&folder.display().to_string()])?;
        filled.map(|()| image)
    }

    /// One more device of the image, mounted on `folder`, with this read-ahead.
    ///
    /// # Errors
    /// If one of the system's tools fails.
    pub(crate) fn mount(&self, folder: &Path, read_ahead_kb: u32) -> Result<Volume> {
        let device = self.attach("--read-only")?;
        let mounted = mount(&device, folder, "ro");
        detach(&device);
        mounted?;
        let number = stat(folder).with_context(|| folder.display().to_string())?.st_dev;
        let volume = Volume { folder: folder.to_owned(), device: (major(number), minor(number)) };
        fs::write(volume.about("queue/read_ahead_kb"), read_ahead_kb.to_string())
            .context("setting read_ahead_kb")?;
        Ok(volume)
    }

    fn attach(&self, option: &str) -> Result<String> {
        let image = format!("/proc/{}/fd/{}", std::process::id(), self.memory.as_raw_fd());
        run("losetup", &["--find", option, "--show", &image])
    }
}

impl Volume {
    /// Takes it away, with what the kernel has of it in memory.
    ///
    /// # Errors
    /// If it is in use.
    pub(crate) fn unmount(self) -> Result<()> {
        run("umount", &[&self.folder.display().to_string()]).map(drop)
    }

    /// Bytes that were read from the device so far.
    pub(crate) fn bytes_read(&self) -> Result<u64> {
        let text = fs::read_to_string(self.about("stat")).context("the device's account")?;
        let sectors: u64 = text.split_ascii_whitespace().nth(2).context("too short")?.parse()?;
        Ok(sectors * SECTOR_BYTES)
    }

    fn about(&self, what: &str) -> String {
        format!("/sys/dev/block/{}:{}/{what}", self.device.0, self.device.1)
    }
}

fn mount(device: &str, folder: &Path, how: &str) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    run("mount", &["-t", "ext4", "-o", how, device, &folder.display().to_string()])
}

/// A device that is mounted is detached when it no longer is.
fn detach(device: &str) {
    let _ = run("losetup", &["--detach", device]);
}

/// Unit of the kernel's accounts, for any device.
const SECTOR_BYTES: u64 = 512;
