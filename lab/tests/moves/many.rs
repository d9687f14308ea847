//! Thousands of connections that are kept alive and move.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use baton_lab::network::Network;
use baton_sys::flow_table::Flow;
use baton_sys::tcp_repair::{TcpState, dump, end, freeze, restore, thaw};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::agent::{Cluster, Connection, Place, VIPS, flow_of};

/// Goal: as many connections as a process may hold move to nodes and back, and none is mixed up with another. Method: each
/// sends its own number; as many as `BATON_MOVES` says, within the bound for descriptors.
#[test]
fn thousands_of_kept_connections_move() {
    if Network::is_left_out() {
        return;
    }
    let asked = env::var("BATON_MOVES").map_or(500, |number| number.parse().unwrap());
    let bound = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: bound, maximum: bound }).unwrap();
    // Both ends are in this process, beside a few other files.
    let count = asked.min(bound.map_or(asked, |bound| (bound as u32 - 200) / 2));

    let mut cluster = Cluster::new(2);
    let mut connections: Vec<Connection> = Vec::new();
    for (number, vip) in VIPS.into_iter().enumerate() {
        let listener = cluster.listen(vip);
        let of_family = (count + number as u32) / 2;
        connections.extend(cluster.hosts.client.run(|| {
            let pairs = (0..of_family).map(|_| {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                Connection { client, server: listener.accept().unwrap().0, place: Place::Front }
            });
            pairs.collect::<Vec<_>>()
        }));
    }
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..3 {
        exchange(&mut connections, round);
        let (states, mut clients): (Vec<TcpState>, Vec<Option<TcpStream>>) = connections
            .drain(..)
            .map(|connection| {
                cluster.hold(flow_of(&connection.server));
                let begin = Instant::now();
                freeze(&connection.server).unwrap();
                let state = dump(&connection.server).unwrap();
                end(&connection.server).unwrap();
                times[0].push(begin.elapsed());
                (state, Some(connection.client))
            })
            .unzip();
        for place in [Place::Node(0), Place::Node(1), Place::Front] {
            let here = |number: usize| place_of(number, round) == place;
            let sockets: Vec<_> = cluster.host(place).run(|| {
                let states = states.iter().enumerate().filter(|(number, _)| here(*number));
                let restored = states.map(|(number, state)| {
                    let begin = Instant::now();
                    let socket = restore(state).unwrap();
                    times[1].push(begin.elapsed());
                    (number, socket)
                });
                restored.collect()
            });
            for (number, socket) in sockets {
                let TcpState { peer, local, .. } = states[number];
                cluster.release(Flow { client: peer, vip: local }, place);
                thaw(&socket).unwrap();
                let server = TcpStream::from(socket);
                server.set_nonblocking(false).unwrap();
                let client = clients[number].take().unwrap();
                connections.push(Connection { client, server, place });
            }
        }
    }
    exchange(&mut connections, 3);
    assert_eq!(connections.len(), count as usize);
    cluster.assert_nothing_went_wrong();
    let [dumping, restoring] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    println!("{count} connections: dump and end {dumping:?}, restore {restoring:?} (medians)");
}

fn place_of(number: usize, round: u32) -> Place {
    match (number + round as usize) % 3 {
        0 => Place::Node(0),
        1 => Place::Node(1),
        _ => Place::Front,
    }
}

/// All clients ask before the first is answered.
fn exchange(connections: &mut [Connection], round: u32) {
    let said = |number: usize, round: u32| [number.to_be_bytes(), u64::from(round).to_be_bytes()].concat();
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.client.write_all(&said(number, round)).unwrap();
    }
    let mut received = [0; 16];
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.server.read_exact(&mut received).unwrap();
        assert_eq!(received[..], said(number, round), "at the server");
        connection.server.write_all(&said(number, !round)).unwrap();
        connection.client.read_exact(&mut received).unwrap();
        assert_eq!(received[..], said(number, !round), "at the client");
    }
}
