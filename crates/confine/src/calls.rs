//! Which system calls the processes make that read what strangers send.
//!
//! `USED` is what they need. A call that is in neither list fails with `ENOSYS`, as on a kernel that does not have it: then
//! libraries fall back on older calls. `FORBIDDEN` is what would help an intruder most; these fail even where the others
//! are only logged.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use baton_sys::call_filter::{self, Instruction};
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter};

use crate::table::CallList;

/// What becomes of a system call that the process has no use for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// The call fails.
    #[default]
    Enforce,
    /// The call is done, and the kernel logs it; the most dangerous ones fail.
    Log,
    /// The call is done.
    Off,
}

/// A list of system calls with their names.
macro_rules! calls {
    ($(#[$about:meta])* $list:ident: $($name:ident)+ $(; x86_64: $($old:ident)+)?) => {
        $(#[$about])*
        const $list: &[(&str, libc::c_long)] = &[
            $((stringify!($name), libc::$name),)+
            $($(#[cfg(target_arch = "x86_64")] (stringify!($old), libc::$old),)+)?
        ];
    };
}

calls! {
    /// Made by Rust's standard library, the C library, the allocator and Baton itself.
    USED:
    // Sockets.
    SYS_accept4 SYS_bind SYS_connect SYS_getpeername SYS_getsockname SYS_getsockopt SYS_listen SYS_recvfrom SYS_recvmmsg
    SYS_recvmsg SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_setsockopt SYS_shutdown SYS_socket SYS_socketpair
    // Descriptors, events, pipes.
    SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2
    SYS_eventfd2 SYS_fcntl SYS_ioctl SYS_pipe2 SYS_ppoll SYS_pselect6 SYS_signalfd4 SYS_timerfd_create
    SYS_timerfd_gettime SYS_timerfd_settime SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch
    // Bytes.
    SYS_copy_file_range SYS_lseek SYS_pread64 SYS_preadv SYS_preadv2 SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read
    SYS_readahead SYS_readv SYS_sendfile SYS_splice SYS_tee SYS_vmsplice SYS_write SYS_writev
    // Files.
    SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fchmod SYS_fchmodat SYS_fchown SYS_fdatasync
    SYS_fgetxattr SYS_flock SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_getcwd SYS_getdents64 SYS_getxattr
    SYS_linkat SYS_memfd_create SYS_mkdirat SYS_newfstatat SYS_openat SYS_openat2 SYS_readlinkat SYS_renameat
    SYS_renameat2 SYS_statfs SYS_statx SYS_sync_file_range SYS_umask SYS_unlinkat SYS_utimensat
    // Memory.
    SYS_brk SYS_get_mempolicy SYS_madvise SYS_mbind SYS_membarrier SYS_mincore SYS_mlock SYS_mlock2
    SYS_mmap SYS_mprotect SYS_mremap SYS_msync SYS_munlock SYS_munmap
    // Threads and their end; signals that a process sends to itself.
    SYS_clone SYS_clone3 SYS_exit SYS_exit_group SYS_futex SYS_futex_waitv SYS_get_robust_list SYS_rseq
    SYS_set_robust_list SYS_set_tid_address SYS_kill SYS_restart_syscall SYS_rt_sigaction SYS_rt_sigpending
    SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_sigaltstack SYS_tgkill SYS_tkill
    SYS_wait4
    // Clocks, the scheduler, bounds, identity.
    SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_gettimeofday SYS_nanosleep SYS_getcpu SYS_getpriority
    SYS_setpriority SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr
    SYS_sched_getparam SYS_sched_getscheduler SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setscheduler
    SYS_sched_yield SYS_ioprio_get SYS_ioprio_set SYS_capget SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups
    SYS_getpgid SYS_getpid SYS_getppid SYS_getresgid SYS_getresuid SYS_getsid SYS_gettid SYS_getuid SYS_getrandom
    SYS_getrlimit SYS_getrusage SYS_prctl SYS_prlimit64 SYS_sysinfo SYS_times SYS_uname;
    x86_64: SYS_access SYS_alarm SYS_arch_prctl SYS_dup2 SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_getdents
    SYS_getpgrp SYS_inotify_init SYS_lstat SYS_mkdir SYS_open SYS_pause SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_rmdir
    SYS_select SYS_stat SYS_time SYS_unlink
}

calls! {
    /// Programs, other processes, users, the kernel itself. Here and not only absent above: this list also holds where the other
    /// one is only logged.
    FORBIDDEN:
    // Other programs, and other processes.
    SYS_execve SYS_execveat SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_pidfd_getfd
    SYS_pidfd_open SYS_pidfd_send_signal SYS_kcmp SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo
    // Users and rights.
    SYS_capset SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid SYS_setfsgid
    SYS_setgroups SYS_setns SYS_unshare SYS_chroot SYS_pivot_root SYS_add_key SYS_request_key SYS_keyctl SYS_personality
    SYS_open_by_handle_at SYS_name_to_handle_at SYS_acct SYS_quotactl
    // The kernel: what it runs, mounts, and what has been a way into it.
    SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_mount
    SYS_umount2 SYS_move_mount SYS_open_tree SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr SYS_swapon
    SYS_swapoff SYS_reboot SYS_kexec_load SYS_init_module SYS_finit_module SYS_delete_module SYS_syslog
    SYS_lookup_dcookie SYS_sethostname SYS_setdomainname SYS_settimeofday SYS_clock_settime SYS_adjtimex
    SYS_clock_adjtime SYS_vhangup SYS_fanotify_init SYS_mknodat SYS_add_key SYS_remap_file_pages SYS_move_pages
    SYS_migrate_pages SYS_nfsservctl;
    x86_64: SYS_fork SYS_vfork SYS_mknod SYS_ioperm SYS_iopl SYS_modify_ldt SYS_kexec_file_load SYS_uselib SYS__sysctl SYS_ustat
}

/// Installs the filters in this thread, and in those that it starts from now on.
pub(crate) fn filter(list: CallList, calls: Calls) -> io::Result<()> {
    let also: &[libc::c_long] = match list {
        CallList::All => return Ok(()),
        CallList::Server => &[],
        CallList::ServerAndBpf => &[libc::SYS_bpf],
    };
    let not_here = || SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let (used, forbidden) = match calls {
        Calls::Enforce => (Some(not_here()), None),
        Calls::Log => (Some(SeccompAction::Log), Some(SeccompAction::Errno(libc::EPERM.unsigned_abs()))),
        Calls::Off => (None, None),
    };
    // The stricter answer counts where several filters have one. The first must let the second in.
    let numbers =
        |list: &[(&str, libc::c_long)]| list.iter().map(|&(_, number)| number).collect::<BTreeSet<_>>();
    let also: BTreeSet<_> = also.iter().copied().collect();
    let forbidden = forbidden.map(|action| (&numbers(FORBIDDEN) - &also, SeccompAction::Allow, action));
    let used = used.map(|action| (&numbers(USED) | &also, action, SeccompAction::Allow));
    for (list, otherwise, listed) in forbidden.into_iter().chain(used) {
        let program = program(&list, otherwise, listed).map_err(io::Error::other)?;
        let instruction =
            |one: &seccompiler::sock_filter| Instruction { code: one.code, jt: one.jt, jf: one.jf, k: one.k };
        call_filter::install(&program.iter().map(instruction).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn program(
    list: &BTreeSet<libc::c_long>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let rules: BTreeMap<_, _> = list.iter().map(|&number| (number, Vec::new())).collect();
    let here = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, listed, here)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a call that becomes usual is allowed on purpose. Method: each name in the tables of what requests cost, which tests
    /// count, is in the list.
    #[test]
    fn what_requests_cost_is_allowed() {
        let document = include_str!("../../../docs/system-calls.md");
        let tables = document.lines().filter(|line| line.starts_with("| ") && !line.contains("application"));
        let rows = tables.filter_map(|line| line.split('|').nth(2));
        let names =
            rows.filter(|calls| !calls.contains(',')).flat_map(|calls| calls.split('`').skip(1).step_by(2));
        // Other tables have packets in that place, and the names of flags.
        let is_call = |name: &&str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        let mut count = 0;
        for name in names.filter(is_call) {
            let allowed = USED.iter().any(|(used, _)| used.strip_prefix("SYS_") == Some(name));
            assert!(allowed, "`{name}` is in docs/system-calls.md, but a worker may not call it");
            count += 1;
        }
        assert!(count > 50, "the tables have been found: {count}");
    }

    #[test]
    fn no_call_is_used_and_forbidden() {
        for (name, number) in USED {
            assert!(FORBIDDEN.iter().all(|(_, other)| other != number), "{name}");
        }
    }
}
