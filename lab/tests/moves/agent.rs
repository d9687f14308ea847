//! A cluster whose front-end moves connections: what the process that moves them does, in one thread.

use std::net::{IpAddr, TcpListener, TcpStream};

use baton_lab::network::{ClusterHosts, Host};
use baton_sys::flow_table::{Flow, FlowTable, NextHop};
use baton_sys::tcp_repair::{TcpState, dump, end, freeze, restore, thaw};

/// The hosts, and the table of the front-end.
pub(crate) struct Cluster {
    pub(crate) hosts: ClusterHosts,
    pub(crate) table: FlowTable,
    /// The number of the front-end's interface.
    interface: u32,
}

/// Where a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Front,
    Node(usize),
}

/// A connection: the client's end, the server's end and where that is.
pub(crate) struct Connection {
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
    pub(crate) place: Place,
}

impl Cluster {
    pub(crate) fn new(nodes: usize) -> Self {
        let hosts = ClusterHosts::new(nodes).unwrap();
        let (table, interface) = hosts.front.run(|| {
            let mut table = FlowTable::create(1 << 14).unwrap();
            let interface = baton_sys::interfaces::towards(hosts.client.v4().into()).unwrap().unwrap();
            table.attach(interface).unwrap();
            table.attach(interface).unwrap();
            (table, interface)
        });
        Self { hosts, table, interface }
    }

    pub(crate) fn host(&self, place: Place) -> &Host {
        match place {
            Place::Front => &self.hosts.front,
            Place::Node(number) => &self.hosts.nodes[number],
        }
    }

    /// The server's listener on the front-end, for one family.
    pub(crate) fn listen(&self, vip: IpAddr) -> TcpListener {
        self.hosts.front.run(|| TcpListener::bind((vip, PORT)).unwrap())
    }

    /// A client that connects to the VIP, and is accepted by the front-end.
    pub(crate) fn connect(&self, listener: &TcpListener) -> Connection {
        let vip = listener.local_addr().unwrap();
        let client = self.hosts.client.run(|| TcpStream::connect(vip).unwrap());
        let server = listener.accept().unwrap().0;
        server.set_nodelay(true).unwrap();
        Connection { client, server, place: Place::Front }
    }

    /// Moves the connection, with its client's packets held meanwhile.
    pub(crate) fn move_to(&mut self, connection: Connection, place: Place) -> Connection {
        let Connection { client, server, .. } = connection;
        self.hold(flow_of(&server));
        let state = give_away(server);
        let server = self.take(&state, place);
        Connection { client, server, place }
    }

    pub(crate) fn hold(&mut self, flow: Flow) {
        self.table.hold(flow).unwrap();
    }

    /// Makes the connection there, and lets the client's packets go there.
    pub(crate) fn take(&mut self, state: &TcpState, place: Place) -> TcpStream {
        let socket = self.host(place).run(|| restore(state).unwrap());
        self.release(Flow { client: state.peer, vip: state.local }, place);
        thaw(&socket).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_nonblocking(false).unwrap();
        stream
    }

    /// Lets the client's packets go there.
    pub(crate) fn release(&mut self, flow: Flow, place: Place) {
        match place {
            Place::Front => assert!(self.table.remove(flow)),
            Place::Node(number) => {
                let node = &self.hosts.nodes[number];
                let address = if flow.client.is_ipv4() { node.v4().into() } else { node.v6().into() };
                self.table.forward(flow, NextHop { interface: self.interface, address }).unwrap();
            }
        }
    }

    /// Fails if a host has reset a connection, or got a segment with a wrong checksum.
    pub(crate) fn assert_nothing_went_wrong(&self) {
        let hosts = [&self.hosts.client, &self.hosts.front].into_iter().chain(&self.hosts.nodes);
        for (number, host) in hosts.enumerate() {
            for counter in ["OutRsts", "InCsumErrors"] {
                assert_eq!(host.counter("Tcp", counter).unwrap(), 0, "{counter} of host {number}");
            }
        }
    }
}

/// Ends the connection where it is, by bytes that travel.
pub(crate) fn give_away(server: TcpStream) -> TcpState {
    freeze(&server).unwrap();
    let state = dump(&server).unwrap();
    end(&server).unwrap();
    TcpState::from_bytes(&state.to_bytes()).unwrap()
}

/// The addresses as the client's packets have them.
pub(crate) fn flow_of(server: &TcpStream) -> Flow {
    Flow { client: server.peer_addr().unwrap(), vip: server.local_addr().unwrap() }
}

/// The VIP of both families.
pub(crate) const VIPS: [IpAddr; 2] = [IpAddr::V4(ClusterHosts::VIP_V4), IpAddr::V6(ClusterHosts::VIP_V6)];

pub(crate) const PORT: u16 = 80;
