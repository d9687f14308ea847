//! Records that the kernel seals. Few kernels on which tests run can: `scripts/test-kernel-tls` has one in a virtual machine.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::leave_out;

/// The kernel counts for all tests of a process together: only the holder of this may have it seal. `None`: it cannot, and
/// the test is left out.
pub(crate) fn alone() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = baton_sys::kernel_tls::self_test() {
        leave_out("records sealed by the kernel", &error.to_string());
        return None;
    }
    Some(alone)
}

/// Whether the kernel can.
pub(crate) fn is_there() -> bool {
    baton_sys::kernel_tls::self_test().is_ok()
}

/// Connections for which the kernel has sealed, tests of servers that start included.
pub(crate) fn connections() -> u64 {
    let counts = fs::read_to_string("/proc/net/tls_stat").expect("the kernel's counts");
    let line = counts.lines().find_map(|line| line.strip_prefix("TlsTxSw ")).expect("a count");
    line.trim().parse().expect("a number")
}
