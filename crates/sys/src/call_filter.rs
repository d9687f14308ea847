//! Filters of system calls (seccomp).

use std::io;

/// An instruction of a filter: classic BPF.
pub type Instruction = libc::sock_filter;

/// Installs a filter in this thread, and in those that it starts from now on. It cannot be taken back.
///
/// The filter is no reason for the kernel to switch on mitigations of speculative execution. Before Linux 5.16 it did so for
/// each process with a filter, which makes all of its code slower. They protect a program from foreign code that it runs itself
/// in the same memory; a server that starts no programs has none.
///
/// # Errors
/// `EACCES` if the thread may still gain privileges (`no_new_privs`); `EINVAL` if the filter is none.
pub fn install(filter: &[Instruction]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the instructions, to which pointer and length belong, and writes to nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a filter refuses a call in its own thread only. Method: it refuses `getpriority`.
    #[test]
    fn a_filter_refuses_in_its_thread() {
        let statement = |code: u32, k| Instruction { code: code as u16, jt: 0, jf: 0, k };
        let refused = libc::SYS_getpriority as u32;
        let filter = [
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
            Instruction { jf: 1, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, refused) },
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        ];
        let ask = || rustix::process::getpriority_process(None);
        std::thread::spawn(move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            assert_eq!(install(&[]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
            install(&filter).unwrap();
            assert_eq!(ask(), Err(rustix::io::Errno::IO));
        })
        .join()
        .unwrap();
        assert!(ask().is_ok());
    }
}
