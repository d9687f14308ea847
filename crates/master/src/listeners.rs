//! The listening sockets: bound by the master, handed to every worker, kept across reloads and workers' deaths.
//!
//! Where processes have sockets of their own (`SO_REUSEPORT`), the master opens and keeps all of them: others serve the
//! queue of a worker that died (`failover`).

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use baton_config::Config;
use baton_engine::arch::ListenerSharing;
use baton_engine::listen::{
    self, ListenAddress, ListenOptions, address_of, remove_socket_file, remove_stale_socket,
};
use baton_report::{OperatorError, counted, log};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::inherited::InheritedSocket;
use super::listen_error::cannot_listen;

/// One address and its sockets.
#[derive(Debug)]
pub(super) struct Listening {
    /// The id by which sites and workers name it; never reused for another address.
    pub(super) id: usize,
    /// The address as configured.
    wanted: ListenAddress,
    /// The real address: with the port that the kernel chose in place of 0.
    pub(super) actual: ListenAddress,
    /// Whether the service manager opened it.
    pub(super) managed: bool,
    /// One for all processes, or one for each; any number if they are inherited.
    sockets: Vec<OwnedFd>,
}

impl Listening {
    /// The sockets from which worker `process` of `processes` accepts. Together the workers have all sockets, since the
    /// kernel gives each socket its part of the clients.
    pub(super) fn sockets_of(
        &self,
        process: usize,
        processes: usize,
    ) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = process % self.sockets.len();
        let is_own = move |index: &usize| index % processes == own;
        (0..self.sockets.len()).filter(is_own).map(|index| self.sockets[index].as_fd())
    }

    /// Whether workers have sockets of their own.
    pub(super) fn is_split(&self) -> bool {
        self.sockets.len() > 1
    }

    /// The address as it was configured, and all sockets: what a successor needs.
    pub(super) fn inherited_sockets(&self) -> (&ListenAddress, &[OwnedFd]) {
        (&self.wanted, &self.sockets)
    }
}

/// How the master opens sockets: fixed while it lives.
#[derive(Clone, Debug)]
pub(super) struct SocketSetup {
    /// Which workers accept from which sockets.
    pub(super) sharing: ListenerSharing,
    /// Number of worker processes.
    pub(super) processes: usize,
    /// The CPU whose connections go to each process's listener. `None`: a hash decides.
    pub(super) cpu_of_listener: Option<Vec<usize>>,
    /// Their options; `sharing` decides on `reuse_port`.
    pub(super) options: ListenOptions,
}

/// All addresses on which the server listens.
#[derive(Debug)]
pub(super) struct Listeners {
    setup: SocketSetup,
    all: Vec<Listening>,
    next_id: usize,
}

impl Listeners {
    /// Listens on each of the addresses, with those sockets of `passed` that fit. Also returns the addresses of the
    /// others, to report them.
    ///
    /// # Errors
    /// The first address on which the server cannot listen.
    pub(super) fn open(
        setup: SocketSetup,
        addresses: &[ListenAddress],
        passed: Vec<InheritedSocket>,
    ) -> Result<(Self, Vec<ListenAddress>), OperatorError> {
        let mut this = Self { setup, all: Vec::new(), next_id: 0 };
        for address in addresses {
            let exact: Vec<_> = passed.iter().filter(|socket| socket.address == *address).collect();
            let fitting = match exact.is_empty() {
                true => passed.iter().filter(|socket| socket.also_listens_on(address)).collect(),
                false => exact,
            };
            let fresh = if fitting.is_empty() { this.bind(address)? } else { this.adopt(address, &fitting)? };
            this.all.push(fresh);
        }
        let unused = |socket: &InheritedSocket| {
            !addresses.iter().any(|address| socket.address == *address || socket.also_listens_on(address))
        };
        Ok((this, passed.into_iter().filter(unused).map(|socket| socket.address).collect()))
    }

    /// Opens sockets for the addresses that are new, without changing anything else.
    ///
    /// # Errors
    /// The first address on which the server cannot listen.
    pub(super) fn prepare(&mut self, addresses: &[ListenAddress]) -> Result<Vec<Listening>, OperatorError> {
        let mut fresh = Vec::new();
        for address in addresses {
            if !self.all.iter().any(|known| known.wanted == *address) {
                fresh.push(self.bind(address).inspect_err(|_| remove_files(&fresh))?);
            }
        }
        Ok(fresh)
    }

    /// From now on listens on exactly these addresses, of which `fresh` are the new ones.
    pub(super) fn commit(&mut self, addresses: &[ListenAddress], fresh: Vec<Listening>) {
        let (kept, removed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.all).into_iter().partition(|known| addresses.contains(&known.wanted));
        remove_files(&removed);
        self.all = kept;
        self.all.extend(fresh);
    }

    /// Forgets sockets that [`prepare`](Self::prepare) made.
    pub(super) fn discard(fresh: &[Listening]) {
        remove_files(fresh);
    }

    /// The id of each address, in order; their sockets are among these or `fresh`.
    pub(super) fn ids(&self, addresses: &[ListenAddress], fresh: &[Listening]) -> Vec<usize> {
        let id_of = |address: &ListenAddress| {
            self.all.iter().chain(fresh).find(|one| one.wanted == *address).map(|one| one.id)
        };
        addresses.iter().filter_map(id_of).collect()
    }

    /// The real address for a configured one, which may have port 0.
    pub(super) fn actual(&self, wanted: &ListenAddress) -> Option<&ListenAddress> {
        self.all.iter().find(|one| one.wanted == *wanted).map(|one| &one.actual)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Listening> {
        self.all.iter()
    }

    /// Closes the master's copies, at the end: clients are refused once the workers have closed theirs, too.
    pub(super) fn close(&mut self) {
        remove_files(&self.all);
        self.all.clear();
    }

    /// Like [`close`](Self::close), but another server still listens on these sockets: their names stay.
    pub(super) fn leave(&mut self) {
        self.all.clear();
    }

    fn bind(&mut self, address: &ListenAddress) -> Result<Listening, OperatorError> {
        let sockets = self.bind_all(address).map_err(|error| cannot_listen(address, &error))?;
        self.listening(address, false, sockets)
    }

    /// Takes inherited sockets. A unit with `ReusePort=` may pass several for one address, as we bind one per process.
    fn adopt(
        &mut self,
        address: &ListenAddress,
        passed: &[&InheritedSocket],
    ) -> Result<Listening, OperatorError> {
        let adopt = |passed: &&InheritedSocket| {
            // A socket for both families serves two addresses.
            let socket = passed.socket.try_clone()?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            if let ListenAddress::Tcp(_) = address {
                listen::inherit_tcp_options(&socket, self.setup.options.defer_accept_s)?;
            }
            Ok(socket)
        };
        let sockets: io::Result<_> = passed.iter().map(adopt).collect();
        let sockets = sockets.map_err(|error| {
            OperatorError::of(format_args!("use the socket passed for {address}"), &error)
        })?;
        self.listening(address, passed.iter().any(|passed| passed.managed), sockets)
    }

    fn listening(
        &mut self,
        wanted: &ListenAddress,
        managed: bool,
        sockets: Vec<OwnedFd>,
    ) -> Result<Listening, OperatorError> {
        let actual = address_of(&sockets[0]).map_err(|error| cannot_listen(wanted, &error))?;
        if let ListenAddress::Tcp(_) = wanted {
            self.steer(wanted, &sockets);
        }
        let id = self.next_id;
        self.next_id += 1;
        Ok(Listening { id, wanted: wanted.clone(), actual, managed, sockets })
    }

    /// Steers connections by CPU, or else ends the steering that an earlier server began on inherited sockets.
    fn steer(&self, address: &ListenAddress, sockets: &[OwnedFd]) {
        let no_effect = |why: &dyn Display| {
            log::warning(format_args!("`send.listener_per_cpu` has no effect on {address}: {why}"));
        };
        match &self.setup.cpu_of_listener {
            Some(cpus) if cpus.len() == sockets.len() => {
                if let Err(error) = baton_sys::tcp::steer_by_cpu(&sockets[0], cpus) {
                    no_effect(&error);
                }
                return;
            }
            Some(cpus) => {
                let (passed, workers) = (sockets.len(), cpus.len());
                let [passed, workers] =
                    [(passed, "socket"), (workers, "worker")].map(|(n, one)| counted(n as u64, one));
                no_effect(&format_args!("{passed} for {workers}"));
            }
            None => {}
        }
        // Fails where no program is attached: on all sockets but inherited ones.
        _ = baton_sys::tcp::stop_steering(&sockets[0]);
    }

    /// Steers again as this server is configured: another one, which has ended, may have changed the inherited sockets.
    pub(super) fn restore_steering(&self) {
        for one in self.all.iter().filter(|one| matches!(one.wanted, ListenAddress::Tcp(_))) {
            self.steer(&one.wanted, &one.sockets);
        }
    }

    fn bind_all(&self, address: &ListenAddress) -> io::Result<Vec<OwnedFd>> {
        match address {
            ListenAddress::Unix(path) => {
                remove_stale_socket(path)?;
                let socket = listen::bind(address, &self.setup.options)?;
                // Like a port, it is open to every user; the permissions of the directory restrict it.
                fs::set_permissions(path, Permissions::from_mode(0o666))?;
                Ok(vec![socket])
            }
            ListenAddress::Tcp(tcp) => self.bind_tcp(*tcp),
        }
    }

    fn bind_tcp(&self, address: SocketAddr) -> io::Result<Vec<OwnedFd>> {
        if self.setup.sharing == ListenerSharing::Shared {
            return Ok(vec![listen::bind(&ListenAddress::Tcp(address), &self.setup.options)?]);
        }
        let options = ListenOptions { reuse_port: true, ..self.setup.options };
        check_unused(address)?;
        let first = listen::bind(&ListenAddress::Tcp(address), &options)?;
        // The others join the first, on the port that the kernel chose if none was configured.
        let actual = address_of(&first)?;
        let mut sockets = vec![first];
        while sockets.len() < self.setup.processes {
            sockets.push(listen::bind(&actual, &options)?);
        }
        Ok(sockets)
    }
}

/// The addresses of all sites.
pub(super) fn listen_addresses(config: &Config) -> Vec<ListenAddress> {
    config.addresses().into_iter().cloned().collect()
}

/// Fails if the port is in use. Sockets with `SO_REUSEPORT` would silently share it with a second server of the same
/// user, started by mistake; a socket without the option does not.
fn check_unused(address: SocketAddr) -> io::Result<()> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let probe = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&probe, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&probe, true)?;
    }
    Ok(rustix::net::bind(&probe, &address)?)
}

fn remove_files(listening: &[Listening]) {
    listening.iter().filter(|one| !one.managed).for_each(|one| remove_socket_file(&one.actual));
}

/// A listener on any port, with a socket for each of so many processes.
#[cfg(test)]
pub(super) fn for_test(processes: usize) -> Listeners {
    let options =
        ListenOptions { backlog: 16, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
    let setup =
        SocketSetup { sharing: ListenerSharing::PerProcess, processes, cpu_of_listener: None, options };
    let any_port = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    Listeners::open(setup, &[any_port], Vec::new()).unwrap().0
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::TcpStream;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn setup(sharing: ListenerSharing) -> SocketSetup {
        let options =
            ListenOptions { backlog: 16, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
        SocketSetup { sharing, processes: 3, cpu_of_listener: None, options }
    }

    fn tcp(text: &str) -> ListenAddress {
        ListenAddress::Tcp(text.parse().unwrap())
    }

    fn open(sharing: ListenerSharing, addresses: &[ListenAddress]) -> Result<Listeners, OperatorError> {
        Listeners::open(setup(sharing), addresses, Vec::new()).map(|(listeners, _)| listeners)
    }

    fn sockets(one: &Listening) -> HashSet<i32> {
        (0..3).flat_map(|process| one.sockets_of(process, 3)).map(|socket| socket.as_raw_fd()).collect()
    }

    #[test]
    fn processes_share_a_socket_or_have_their_own_on_one_port() {
        let any_port = [tcp("127.0.0.1:0")];
        let shared = open(ListenerSharing::Shared, &any_port).unwrap();
        assert_eq!(sockets(&shared.all[0]).len(), 1);

        let split = open(ListenerSharing::PerProcess, &any_port).unwrap();
        assert_eq!(sockets(&split.all[0]).len(), 3);
        for process in 0..3 {
            let own: Vec<_> = split.all[0].sockets_of(process, 3).collect();
            assert_eq!(own.len(), 1);
            assert_eq!(address_of(own[0]).unwrap(), split.all[0].actual);
        }
    }

    #[test]
    fn a_port_in_use_is_noticed_in_spite_of_reuse_port() {
        let first = open(ListenerSharing::PerProcess, &[tcp("127.0.0.1:0")]).unwrap();
        let trouble =
            open(ListenerSharing::PerProcess, &[first.all[0].actual.clone()]).unwrap_err().to_string();
        assert!(trouble.contains("likely cause: this server itself listens on that port"), "{trouble}");
    }

    #[test]
    fn a_reload_keeps_known_sockets_and_closes_removed_ones() {
        let dir = tempfile::tempdir().unwrap();
        let kept = tcp("127.0.0.1:0");
        let path = dir.path().join("old.sock");
        let mut listeners =
            open(ListenerSharing::Shared, &[kept.clone(), ListenAddress::Unix(path.clone())]).unwrap();
        let before = sockets(&listeners.all[0]);
        let added = tcp("[::1]:0");

        let wanted = [added.clone(), kept];
        let fresh = listeners.prepare(&wanted).unwrap();
        assert!(UnixStream::connect(&path).is_ok(), "nothing changes before the commit");
        listeners.commit(&wanted, fresh);
        assert_eq!(sockets(&listeners.all[0]), before);
        let ListenAddress::Tcp(address) = listeners.all[1].actual else { panic!("not TCP") };
        TcpStream::connect(address).unwrap();
        assert_eq!(listeners.all[1].id, 2, "numbers are never used again");
        assert!(!path.exists());
    }

    #[test]
    fn sockets_that_were_passed_are_taken_where_they_fit() {
        let wanted = open(ListenerSharing::Shared, &[tcp("127.0.0.1:0"), tcp("127.0.0.1:0")]).unwrap();
        let passed = wanted
            .all
            .iter()
            .map(|one| InheritedSocket::from_service_manager(one.sockets[0].try_clone().unwrap()));
        let passed = passed.collect::<Result<_, _>>().unwrap();
        let address = wanted.all[0].actual.clone();
        let (taken, others) =
            Listeners::open(setup(ListenerSharing::PerProcess), &[address], passed).unwrap();
        assert!(taken.all[0].managed);
        assert_eq!(sockets(&taken.all[0]).len(), 1, "there is only one to share");
        assert_eq!(others, [wanted.all[1].actual.clone()]);
    }

    #[test]
    fn a_socket_for_both_families_is_taken_for_both_addresses() {
        for dual in [true, false] {
            // Its port is free for both families: other tests may have taken it for one.
            let free = std::net::TcpListener::bind("[::]:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let socket = rustix::net::socket(AddressFamily::INET6, SocketType::STREAM, None).unwrap();
            sockopt::set_ipv6_v6only(&socket, !dual).unwrap();
            sockopt::set_socket_reuseaddr(&socket, true).unwrap();
            rustix::net::bind(&socket, &format!("[::]:{port}").parse::<SocketAddr>().unwrap()).unwrap();
            rustix::net::listen(&socket, 1).unwrap();
            let passed = InheritedSocket::from_service_manager(socket).unwrap();
            let ListenAddress::Tcp(v6) = passed.address.clone() else { panic!("not TCP") };
            let v4 = tcp(&format!("0.0.0.0:{}", v6.port()));
            assert_eq!(passed.also_listens_on(&v4), dual);
            assert!(!passed.also_listens_on(&tcp(&format!("127.0.0.1:{}", v6.port()))));

            let wanted = [v4, ListenAddress::Tcp(v6)];
            let (listeners, unused) =
                Listeners::open(setup(ListenerSharing::Shared), &wanted, vec![passed]).unwrap();
            assert_eq!(listeners.all.iter().map(|one| one.managed).collect::<Vec<_>>(), [dual, true]);
            assert_eq!(unused, []);
        }
    }

    /// Five sockets for three processes, as after an upgrade with another number of workers: each has one process.
    #[test]
    fn no_socket_that_was_passed_is_left_out() {
        let options = ListenOptions { reuse_port: true, ..setup(ListenerSharing::Shared).options };
        let first = listen::bind(&tcp("127.0.0.1:0"), &options).unwrap();
        let actual = address_of(&first).unwrap();
        let mut passed = vec![InheritedSocket::from_predecessor(tcp("127.0.0.1:0"), first, false)];
        for _ in 1..5 {
            let socket = listen::bind(&actual, &options).unwrap();
            passed.push(InheritedSocket::from_predecessor(tcp("127.0.0.1:0"), socket, false));
        }
        let (taken, unused) =
            Listeners::open(setup(ListenerSharing::PerProcess), &[tcp("127.0.0.1:0")], passed).unwrap();
        assert_eq!((unused, &taken.all[0].actual), (vec![], &actual));
        let per_process: Vec<usize> =
            (0..3).map(|process| taken.all[0].sockets_of(process, 3).count()).collect();
        assert_eq!(per_process, [2, 2, 1]);
        assert_eq!(sockets(&taken.all[0]).len(), 5);
    }

    /// An upgrade that switches `listener_per_cpu` off: the program is attached to the sockets, not to the process.
    #[test]
    fn inherited_sockets_are_no_longer_steered_without_the_setting() {
        let any_port = [tcp("127.0.0.1:0")];
        let steering =
            SocketSetup { cpu_of_listener: Some(vec![0, 1, 2]), ..setup(ListenerSharing::PerProcess) };
        let (before, _) = Listeners::open(steering, &any_port, Vec::new()).unwrap();
        let (wanted, sockets) = before.all[0].inherited_sockets();
        let passed = sockets.iter().map(|socket| {
            InheritedSocket::from_predecessor(wanted.clone(), socket.try_clone().unwrap(), false)
        });
        Listeners::open(setup(ListenerSharing::PerProcess), &any_port, passed.collect()).unwrap();
        let nothing_attached = baton_sys::tcp::stop_steering(&sockets[0]).unwrap_err();
        assert_eq!(nothing_attached.kind(), io::ErrorKind::NotFound);
        // That upgrade has failed.
        before.restore_steering();
        baton_sys::tcp::stop_steering(&sockets[0]).unwrap();
    }
}
