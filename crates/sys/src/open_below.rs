//! Files that root opens below folders of other users.
//!
//! The owner of a folder may put a link there at any time, and then root would write to, or read from, where the link leads.
//! So from the first folder on that root does not own alone, no link is followed. Links in root's own folders are root's word.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fcntl_setfl, fstat, ftruncate, openat,
    openat2, readlinkat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Opens a file with these flags, and creates it with this mode if they say so. Below a folder of others it must be a regular
/// file, or a pipe of root with a reader, with a single name.
///
/// # Errors
/// As open(2). `ELOOP` and `EXDEV` for a link below a folder of others, `EPERM` for what is no regular file there, or has
/// another name.
pub fn open_below(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    if !geteuid().is_root() {
        return Ok(openat(CWD, path, flags, mode)?.into());
    }
    match walk(path)? {
        Way::Own(folder, name) => Ok(openat(folder, name, flags, mode)?.into()),
        Way::Foreign(folder, rest) => {
            // A pipe there must not block, and another's file not be emptied.
            let is_emptied = flags.contains(OFlags::TRUNC);
            let flags = (flags - OFlags::TRUNC) | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let file = openat2(folder, rest, flags, mode, resolve)?;
            let stat = fstat(&file)?;
            let is_expected = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => true,
                // One that root has made there on purpose.
                FileType::Fifo => stat.st_uid == 0,
                _ => false,
            };
            if !is_expected || stat.st_nlink > 1 {
                return Err(Errno::PERM.into());
            }
            if is_emptied {
                ftruncate(&file, 0)?;
            }
            fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
            Ok(file.into())
        }
    }
}

/// Opens a folder, to change it by its descriptor.
///
/// # Errors
/// As [`open_below`].
pub fn open_folder_below(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    if !geteuid().is_root() {
        return Ok(openat(CWD, path, flags, Mode::empty())?);
    }
    match walk(path)? {
        Way::Own(folder, name) => Ok(openat(folder, name, flags, Mode::empty())?),
        Way::Foreign(folder, rest) => {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            Ok(openat2(folder, rest, flags | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
        }
    }
}

/// How far root's own folders lead.
enum Way {
    /// To the last of them, and the name in it.
    Own(OwnedFd, OsString),
    /// To a folder of others, and the rest of the path.
    Foreign(OwnedFd, PathBuf),
}

fn walk(path: &Path) -> io::Result<Way> {
    let mut folder = begin(path)?;
    let mut rest: VecDeque<OsString> = names(path);
    let mut links = 0;
    loop {
        if is_foreign(folder.as_fd())? {
            return Ok(Way::Foreign(folder, rest.iter().collect()));
        }
        let Some(name) = rest.pop_front() else { return Ok(Way::Own(folder, ".".into())) };
        let is_link = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
            // The file may be about to be created.
            Err(Errno::NOENT) if rest.is_empty() => false,
            Err(error) => return Err(error.into()),
        };
        if is_link && !is_magic(folder.as_fd(), &name)? {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            let target =
                PathBuf::from(OsString::from_vec(readlinkat(&folder, &name, Vec::new())?.into_bytes()));
            for name in names(&target).into_iter().rev() {
                rest.push_front(name);
            }
            if target.is_absolute() {
                folder = begin(&target)?;
            }
        } else if rest.is_empty() {
            return Ok(Way::Own(folder, name));
        } else {
            folder =
                openat(&folder, &name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        }
    }
}

fn begin(path: &Path) -> io::Result<OwnedFd> {
    let start = if path.is_absolute() { "/" } else { "." };
    Ok(openat(CWD, start, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| part.as_os_str().to_owned()).collect()
}

/// Whether users other than root may put names into a folder.
fn is_foreign(folder: BorrowedFd<'_>) -> io::Result<bool> {
    let stat = fstat(folder)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    Ok(stat.st_uid != 0 || mode.contains(Mode::WOTH) || mode.contains(Mode::WGRP) && stat.st_gid != 0)
}

/// Whether a link is one of the kernel's, such as `/proc/self/fd/2`, whose text is no path.
fn is_magic(folder: BorrowedFd<'_>, name: &OsString) -> io::Result<bool> {
    let stat = rustix::fs::fstatfs(folder)?;
    Ok(stat.f_type == rustix::fs::PROC_SUPER_MAGIC && name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// So many links the kernel follows, too.
const LINKS_MAX: u32 = 40;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn append(path: &Path) -> io::Result<File> {
        open_below(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE, Mode::RUSR | Mode::WUSR)
    }

    /// Goal: root is not led away by the owner of a folder. Method: as root, a folder of another user has a link, a second name
    /// of a file, a pipe and a link in the way.
    #[test]
    fn root_follows_no_link_below_a_folder_of_others() {
        let base = tempfile::tempdir().unwrap();
        let (secret, logs) = (base.path().join("secret"), base.path().join("logs"));
        fs::write(&secret, "secret").unwrap();
        fs::create_dir(&logs).unwrap();
        fs::create_dir(logs.join("sub")).unwrap();
        symlink(&secret, logs.join("link")).unwrap();
        symlink("sub", logs.join("folder")).unwrap();
        fs::hard_link(&secret, logs.join("hard")).unwrap();
        if !geteuid().is_root() {
            // No other user is led.
            append(&logs.join("link")).unwrap();
            return;
        }
        chown(&logs, Some(65534), Some(65534)).unwrap();
        rustix::fs::mkfifoat(CWD, logs.join("pipe"), Mode::RWXU).unwrap();
        chown(logs.join("pipe"), Some(65534), None).unwrap();
        for name in ["link", "hard", "pipe", "folder/new"] {
            assert!(append(&logs.join(name)).is_err(), "{name}");
        }
        append(&logs.join("plain")).unwrap();
        append(&logs.join("sub/plain")).unwrap();
        assert!(open_folder_below(&logs.join("folder")).is_err());
        let emptied = open_below(&logs.join("hard"), OFlags::WRONLY | OFlags::TRUNC, Mode::empty());
        assert!(emptied.is_err() && fs::read_to_string(&secret).unwrap() == "secret");
    }

    #[test]
    fn links_of_root_are_followed() {
        if !geteuid().is_root() {
            return;
        }
        // Not below /tmp, which belongs to all.
        let Ok(base) = tempfile::tempdir_in("/run") else { return };
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(base.path().join("real")).unwrap();
        symlink(base.path().join("real"), base.path().join("way")).unwrap();
        symlink("way/file", base.path().join("name")).unwrap();
        append(&base.path().join("name")).unwrap();
        assert!(base.path().join("real/file").exists());
        append(Path::new("/dev/stderr")).unwrap();
        append(Path::new("/dev/null")).unwrap();
    }
}
