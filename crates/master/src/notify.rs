//! Reports the server's state to the service manager: sd_notify(3), in the few lines that it takes.

use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use baton_report::log;
use rustix::time::{ClockId, clock_gettime};

/// All workers serve.
pub(super) fn ready() {
    tell("READY=1");
}

/// A reload has begun; [`ready`] ends it, whether it succeeded or not.
pub(super) fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    // Units of Type=notify-reload match the answer with their request by this time.
    tell(&format!(
        "RELOADING=1\nMONOTONIC_USEC={}",
        now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
    ));
}

/// The server has begun to end.
pub(super) fn stopping() {
    tell("STOPPING=1");
}

/// Another process of the service is the main one from now on.
pub(super) fn main_process(pid: impl fmt::Display) {
    tell(&format!("MAINPID={pid}"));
}

fn tell(state: &str) {
    if let Some(slot) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&slot, state)
    {
        log::warning(format_args!("cannot tell the service manager {state:?}: {error}"));
    }
}

fn send(slot: &std::ffi::OsStr, state: &str) -> io::Result<()> {
    let address = match slot.as_encoded_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(slot)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_arrive_at_paths_and_abstract_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let abstract_name = format!("baton-notify-test-{}", std::process::id());
        let at_name = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let receivers = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (UnixDatagram::bind_addr(&at_name).unwrap(), format!("@{abstract_name}").into()),
        ];
        for (receiver, slot) in receivers {
            send(&slot, "READY=1").unwrap();
            let mut text = [0; 64];
            let len = receiver.recv(&mut text).unwrap();
            assert_eq!(&text[..len], b"READY=1");
        }
    }
}
