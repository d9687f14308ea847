//! Processes: fork, wait, privileges, CPU affinity.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;

use crate::check;

/// Which side of a [`fork`] this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The new process.
    Child,
    /// The old process, and the new one's id.
    Parent(i32),
}

/// Makes a copy of this process.
///
/// # Errors
/// `ResourceBusy` if the process has more than one thread: the copy could find a lock that none of its threads will release.
/// `EAGAIN`, `ENOMEM` from fork(2).
pub fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        let why =
            "this process has another thread (emulators of single programs, such as qemu-user, add one)";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    // SAFETY: this is the only thread, so the child is a complete copy in a consistent state and may do anything.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Has `rustix` read the auxiliary vector, which it otherwise does when it first needs it. Before Linux 6.4 that is a file,
/// which a process cannot read once it has changed its user or forbidden core dumps: it would panic.
pub fn read_auxiliary_vector() {
    rustix::param::page_size();
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

/// Collects one child that has ended, without waiting for any: its id and how it ended.
///
/// # Errors
/// `ECHILD` if there are no children.
pub fn reap() -> io::Result<Option<(i32, Ended)>> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the result.
    match check(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) })? {
        0 => Ok(None),
        pid if libc::WIFSIGNALED(status) => Ok(Some((pid, Ended::Killed(libc::WTERMSIG(status))))),
        pid => Ok(Some((pid, Ended::Exited(libc::WEXITSTATUS(status))))),
    }
}

/// Sends a signal to a process.
///
/// # Errors
/// `ESRCH` if it is gone, `EPERM` if it belongs to another user.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill(2) touches no memory of this process.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Asks the kernel to send `SIGTERM` to this process when its parent dies.
///
/// # Errors
/// None that a caller could cause.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
}

/// A user's and a group's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Looks a user up by name; `group` instead of the user's own group if given.
///
/// # Errors
/// `NotFound`, naming the user or group that does not exist.
pub fn identity(user: &str, group: Option<&str>) -> io::Result<Identity> {
    let unknown = |what: &str, name: &str| {
        io::Error::new(io::ErrorKind::NotFound, format!("there is no {what} named {name:?} on this system"))
    };
    // SAFETY: the pointers are to a C string, an entry and a buffer that live during the call; the entry is whole if the call says
    // so, and only its numbers are read.
    let (uid, mut gid) = entry(user, |name, entry, buffer, found| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, buffer.as_mut_ptr(), buffer.len(), found)
    })?
    .map(|entry: libc::passwd| (entry.pw_uid, entry.pw_gid))
    .ok_or_else(|| unknown("user", user))?;
    if let Some(group) = group {
        // SAFETY: as above.
        gid = entry(group, |name, entry, buffer, found| unsafe {
            libc::getgrnam_r(name.as_ptr(), entry, buffer.as_mut_ptr(), buffer.len(), found)
        })?
        .map(|entry: libc::group| entry.gr_gid)
        .ok_or_else(|| unknown("group", group))?;
    }
    Ok(Identity { uid, gid })
}

/// Asks `look` for the entry of a name, with a buffer that grows until its texts fit. `None`: there is none.
fn entry<T>(
    name: &str,
    look: impl Fn(&CStr, *mut T, &mut [libc::c_char], *mut *mut T) -> libc::c_int,
) -> io::Result<Option<T>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let mut buffer = vec![0; ENTRY_BYTES_USUAL];
    loop {
        let (mut entry, mut found) = (MaybeUninit::uninit(), std::ptr::null_mut());
        match look(&name, entry.as_mut_ptr(), &mut buffer, &raw mut found) {
            0 if found.is_null() => return Ok(None),
            // SAFETY: `found` says that the entry has been written.
            0 => return Ok(Some(unsafe { entry.assume_init() })),
            libc::ERANGE if buffer.len() < ENTRY_BYTES_MAX => buffer.resize(buffer.len() * 4, 0),
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// An entry's texts: name, home, shell; the members of a group.
const ENTRY_BYTES_USUAL: usize = 1 << 10;

/// A group with tens of thousands of members.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// Becomes another user for good: supplementary groups, group, user, in this order, and checks that it worked.
///
/// # Errors
/// `EPERM` if the process may not.
pub fn drop_privileges(to: Identity) -> io::Result<()> {
    // SAFETY: these calls take numbers (and an empty list) and touch no memory of this process.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setgid(to.gid))?;
        check(libc::setuid(to.uid))?;
    }
    if to.uid != 0 {
        // The kernel takes the capabilities of root. Those of another user, whose service has given them to it, stay.
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets)?;
    }
    // SAFETY: as above. Becoming root again must fail now.
    if to.uid != 0 && unsafe { libc::setuid(0) } == 0 {
        return Err(io::Error::other("root privileges could be taken back"));
    }
    Ok(())
}

/// Binds the calling thread, and those that it starts later, to one CPU.
///
/// # Errors
/// `EINVAL` if the CPU does not exist or is not allowed to this process.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The CPUs on which this process may run.
///
/// # Errors
/// None that a caller could cause.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_other_threads_is_not_copied() {
        let error = std::thread::spawn(fork).join().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().contains("another thread"), "{error}");
    }

    #[test]
    fn users_and_groups_are_found_by_name() {
        assert_eq!(identity("root", None).unwrap(), Identity { uid: 0, gid: 0 });
        let daemon = identity("root", Some("daemon")).unwrap();
        assert!(daemon.uid == 0 && daemon.gid != 0, "the group replaces the user's own: {daemon:?}");
        for (user, group, missing) in [("nil baton", None, "nil baton"), ("root", Some("none\0"), "none\\0")]
        {
            let error = identity(user, group).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().contains(missing), "{error}");
        }
    }
}
