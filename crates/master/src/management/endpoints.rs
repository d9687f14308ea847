//! The endpoints for operators: the control socket and the admin listeners, and the connections to both.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use baton_engine::listen::{ListenAddress, remove_socket_file};
use baton_http::Status;
use baton_report::{OperatorError, log};
use rustix::event::PollFlags;
use rustix::net::SocketFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::{Arrival, ConnectionId, Connections, Endpoint, Received, Requester, pages};
use crate::applications::Applications;
use crate::control::{Answer, ControlSocket};

/// Where operators connect, and the connections under way.
#[derive(Debug)]
pub(crate) struct Endpoints {
    control: Option<ControlSocket>,
    admin: Vec<(ListenAddress, OwnedFd)>,
    connections: Connections,
    /// `accept` failed: no connection is accepted until then.
    paused_until: Option<Instant>,
}

impl Endpoints {
    /// Endpoints on sockets that listen.
    pub(crate) fn new(control: Option<ControlSocket>, admin: Vec<(ListenAddress, OwnedFd)>) -> Self {
        Self { control, admin, connections: Connections::default(), paused_until: None }
    }

    /// Where the control socket is.
    pub(crate) fn control_path(&self) -> Option<Cow<'_, Path>> {
        self.control.as_ref().map(|control| control.name.current())
    }

    /// The admin listeners, in the order of the configuration.
    pub(crate) fn admin(&self) -> &[(ListenAddress, OwnedFd)] {
        &self.admin
    }

    /// How a request to the admin listener arrived, given the hosts that may be named.
    pub(crate) fn arrival<'a>(&self, id: ConnectionId, hosts: &'a [String]) -> Arrival<'a> {
        Arrival { local: self.connections.local(id), hosts }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.connections.deadline().into_iter().chain(self.paused_until).min()
    }

    /// Closes connections that took too long, and accepts again after a pause.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.connections.expire(now);
        self.paused_until.take_if(|until| *until <= now);
    }

    /// Connections to poll.
    pub(crate) fn interests(&self) -> impl Iterator<Item = (ConnectionId, BorrowedFd<'_>, PollFlags)> {
        self.connections.interests()
    }

    /// Listeners to poll; the index tells admin listeners apart.
    pub(crate) fn listeners(
        &self,
        serves_admin: bool,
    ) -> impl Iterator<Item = (Endpoint, usize, BorrowedFd<'_>)> {
        let admin = self.admin.iter().enumerate().filter(move |_| serves_admin);
        let admin = admin.map(|(index, (_, socket))| (Endpoint::Admin, index, socket.as_fd()));
        let control = self.control.iter().map(|control| (Endpoint::Control, 0, control.listener.as_fd()));
        admin.chain(control).filter(|_| self.paused_until.is_none())
    }

    /// A client connects.
    pub(crate) fn accept(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        applications: &Applications,
        now: Instant,
    ) {
        let listener = match (endpoint, &self.control) {
            (Endpoint::Admin, _) => self.admin[index].1.as_fd(),
            (Endpoint::Control, Some(control)) => control.listener.as_fd(),
            (Endpoint::Control, None) => return,
        };
        match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) if endpoint == Endpoint::Control && !may_command(&socket, applications) => {}
            Ok(socket) => self.connections.add(endpoint, socket, now),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            Err(error) => {
                // Most likely no descriptor is left: trying again at once would only burn CPU time.
                log::error(format_args!("cannot accept a connection for control or monitoring: {error}"));
                self.paused_until = Some(now + Duration::from_secs(1));
            }
        }
    }

    /// A connection is readable, writable, or closed.
    pub(crate) fn handle_ready(&mut self, id: ConnectionId) -> Received {
        self.connections.handle_ready(id)
    }

    /// Answers a request to the admin listener with a whole response.
    pub(crate) fn respond(&mut self, id: ConnectionId, response: Vec<u8>, now: Instant) {
        self.connections.answer(id, response, now);
    }

    /// Gives the same answer to several requesters, each in the form of its endpoint.
    pub(crate) fn answer(
        &mut self,
        requesters: impl IntoIterator<Item = Requester>,
        answer: &Answer,
        now: Instant,
    ) {
        for requester in requesters {
            let (id, bytes) = match (requester, answer) {
                (Requester::Signal, _) => continue,
                (Requester::Control(id), answer) => (id, answer.to_line()),
                (Requester::Admin(id, head_only), Answer::Ok(value)) => {
                    let body = format!("{value}\n");
                    (id, pages::response(Status::OK, "application/json", body.as_bytes(), head_only))
                }
                (Requester::Admin(id, head_only), Answer::Error(why)) => {
                    (id, pages::text(Status::SERVICE_UNAVAILABLE, &format!("{why}\n"), head_only))
                }
            };
            self.connections.answer(id, bytes, now);
        }
    }

    /// Renames the control socket to make room for a successor's.
    ///
    /// # Errors
    /// The socket cannot be renamed.
    pub(crate) fn move_aside(&mut self) -> Result<(), OperatorError> {
        self.control.as_mut().map_or(Ok(()), |control| control.name.move_aside())
    }

    /// Renames the control socket back.
    pub(crate) fn move_back(&mut self) {
        if let Some(control) = &mut self.control {
            control.name.move_back();
        }
    }

    /// Removes the sockets' names. `shares_sockets`: another server still has the admin listeners.
    pub(crate) fn remove(&self, shares_sockets: bool) {
        if let Some(control) = &self.control {
            control.remove();
        }
        if !shares_sockets {
            self.admin.iter().for_each(|(address, _)| remove_socket_file(address));
        }
    }
}

/// Whether the process at the other end of a connection may command the server: one of this user or of root that no
/// application has started. The mode of the socket's file says less: it may be changed, and applications may have the
/// server's user.
fn may_command(socket: &OwnedFd, applications: &Applications) -> bool {
    let Ok(peer) = socket_peercred(socket) else { return false };
    let why = if peer.uid != geteuid() && !peer.uid.is_root() {
        format!("its user is {}", peer.uid.as_raw())
    } else if let Some(application) = applications.origin_of(peer.pid) {
        format!("the application {application} has started it")
    } else {
        return true;
    };
    log::warning(format_args!(
        "process {} has connected to the control socket, and was refused: {why}",
        peer.pid.as_raw_nonzero()
    ));
    false
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};

    use serde_json::json;

    use super::*;

    /// An admin listener on a Unix socket.
    fn endpoints(folder: &Path) -> (Endpoints, UnixStream) {
        let path = folder.join("admin.sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        (Endpoints::new(None, vec![(ListenAddress::Unix(path), listener.into())]), client)
    }

    #[test]
    fn each_requester_gets_the_answer_in_the_form_of_its_endpoint() {
        let folder = tempfile::tempdir().unwrap();
        let (mut endpoints, mut client) = endpoints(folder.path());
        let now = Instant::now();
        endpoints.accept(Endpoint::Admin, 0, &Applications::default(), now);
        client.write_all(b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(matches!(endpoints.handle_ready(0), Received::Request(Endpoint::Admin, _)));
        let requesters = [Requester::Signal, Requester::Control(7), Requester::Admin(0, false)];
        endpoints.answer(requesters, &Answer::Ok(json!({ "state": "serving" })), now);
        let mut response = String::new();
        client.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(response.ends_with("\r\n\r\n{\"state\":\"serving\"}\n"), "{response}");
    }

    #[test]
    fn a_silent_connection_is_due_and_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut endpoints, _client) = endpoints(folder.path());
        assert_eq!(endpoints.deadline(), None);
        endpoints.accept(Endpoint::Admin, 0, &Applications::default(), Instant::now());
        let deadline = endpoints.deadline().unwrap();
        endpoints.advance(deadline);
        assert_eq!(endpoints.deadline(), None);
    }

    #[test]
    fn only_the_last_server_removes_the_admin_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let (endpoints, _client) = endpoints(folder.path());
        let path = folder.path().join("admin.sock");
        endpoints.remove(true);
        assert!(path.exists());
        endpoints.remove(false);
        assert!(!path.exists());
    }
}
