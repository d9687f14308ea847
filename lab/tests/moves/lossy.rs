//! Moves while packets of the client are under way, lost and out of order.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use baton_lab::network::Network;
use baton_sys::tcp_repair::{CannotMove, dump, end, freeze, thaw};

use crate::agent::{Cluster, Connection, PORT, Place, VIPS, flow_of};
use crate::bulk::pattern;
use crate::link::{DistantClient, LinkSettings};

/// Goal: moves are right on a bad network. Method: a client behind a link that loses one packet of 25 and delays one of 10
/// beyond others; it sends a request of 1 to 40 KB, which is read before and behind a move, and gets an answer of up to 80 KB,
/// before whose last acknowledgement the connection moves again.
#[test]
fn moves_with_loss_and_reordering_are_right() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    let settings =
        LinkSettings { delay: Duration::from_millis(3), loses_one_in: 25, delays_one_in: 10, seed: 0x54 };
    let distant = DistantClient::new(&mut cluster.hosts, settings).unwrap();
    let mut random = fastrand::Rng::with_seed(0x54);
    let mut moved = Moved::default();
    for vip in VIPS {
        let listener = cluster.listen(vip);
        let client = distant.host.run(|| TcpStream::connect((vip, PORT)).unwrap());
        let server = listener.accept().unwrap().0;
        let mut connection = Connection { client, server, place: Place::Front };
        for _ in 0..15 {
            let request = &pattern()[..random.usize(1..40 << 10)];
            let mut client = connection.client.try_clone().unwrap();
            let sender = std::thread::spawn(move || client.write_all(request).unwrap());
            let mut received = vec![0; request.len()];
            let (first, rest) = received.split_at_mut(request.len() / 2);
            connection.server.read_exact(first).unwrap();
            connection = moved.move_when_possible(&mut cluster, connection, random.usize(0..3));
            connection.server.read_exact(rest).unwrap();
            assert!(received == request, "a request of {} bytes", request.len());
            sender.join().unwrap();

            let answer = &pattern()[1..1 + random.usize(1..80 << 10)];
            let mut server = connection.server.try_clone().unwrap();
            let sender = std::thread::spawn(move || server.write_all(answer).unwrap());
            let mut received = vec![0; answer.len()];
            connection.client.read_exact(&mut received).unwrap();
            assert!(received == answer, "an answer of {} bytes", answer.len());
            sender.join().unwrap();
            connection = moved.move_when_possible(&mut cluster, connection, random.usize(0..3));
        }
    }
    assert!(distant.link.lost() > 0 && moved.unacked > 0 && moved.unread > 0, "{moved:?}");
    assert_eq!(distant.host.counter("Tcp", "OutRsts").unwrap(), 0);
    cluster.assert_nothing_went_wrong();
}

/// How many moves took along what was not acknowledged, or not read.
#[derive(Debug, Default)]
struct Moved {
    unacked: u32,
    unread: u32,
}

impl Moved {
    /// Moves the connection as a handoff agent does that is refused: it goes on where it is, and tries again.
    fn move_when_possible(
        &mut self,
        cluster: &mut Cluster,
        connection: Connection,
        place: usize,
    ) -> Connection {
        let place = [Place::Node(0), Place::Node(1), Place::Front][place];
        let Connection { client, server, place: from } = connection;
        let (flow, limit) = (flow_of(&server), Instant::now() + Duration::from_secs(60));
        let state = loop {
            cluster.hold(flow);
            freeze(&server).unwrap();
            match dump(&server) {
                Ok(state) => break state,
                // More is under way in one direction than a move takes along.
                Err(CannotMove::Unread(_) | CannotMove::Unacked(_) | CannotMove::Unsent(_)) => {}
                Err(error) => panic!("{error}"),
            }
            thaw(&server).unwrap();
            cluster.release(flow, from);
            assert!(Instant::now() < limit, "the connection cannot move");
            std::thread::sleep(Duration::from_millis(1));
        };
        end(&server).unwrap();
        self.unacked += u32::from(!state.unacked.is_empty());
        self.unread += u32::from(!state.unread.is_empty());
        let server = cluster.take(&state, place);
        Connection { client, server, place }
    }
}
