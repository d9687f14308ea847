//! Which process holds a TCP port: /proc/net/tcp names the socket, /proc/PID/fd its owner.

use std::fmt;
use std::fs;
use std::path::Path;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortOwner {
    /// Its id.
    pub(super) pid: u32,
    /// Its name, as in ps(1).
    name: String,
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// A process that listens on the port, at any address. `None` if there is none, or if it belongs to another user.
pub(super) fn of_port(port: u16) -> Option<PortOwner> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let holds_one = |directory: &Path| {
        fs::read_dir(directory.join("fd")).ok().into_iter().flatten().flatten().any(|descriptor| {
            fs::read_link(descriptor.path())
                .is_ok_and(|target| sockets.iter().any(|socket| target == Path::new(socket)))
        })
    };
    // The oldest owner is the one to stop: of a server with workers, the master.
    let mut pids: Vec<u32> = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.into_iter().find_map(|pid| {
        let directory = Path::new("/proc").join(pid.to_string());
        let name = fs::read_to_string(directory.join("comm")).ok()?;
        holds_one(&directory).then(|| PortOwner { pid, name: name.trim_end().to_owned() })
    })
}

/// The inodes of the sockets that listen on `port`, in the format of proc_pid_net(5), `tcp`: the second column is the
/// local address and port in hexadecimal, the fourth the state (0A: listening), the tenth the inode.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let inode = |line: &str| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, local_port) = columns.get(1)?.rsplit_once(':')?;
        let listens = *columns.get(3)? == "0A" && u16::from_str_radix(local_port, 16) == Ok(port);
        listens.then(|| columns.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4343 1 0000000000000000
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4444 1 0000000000000000
   3: garbage
";

    #[test]
    fn only_listeners_on_the_port_count() {
        assert_eq!(listening_inodes(TABLE, 8080), [4242]);
        assert_eq!(listening_inodes(TABLE, 80), [4444]);
        assert_eq!(listening_inodes(TABLE, 81), [0_u64; 0]);
    }

    #[test]
    fn finds_this_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = of_port(listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(owner.pid, std::process::id());
    }
}
