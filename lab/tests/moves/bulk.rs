//! Long transfers on connections that move.

use std::io::{Read, Write};
use std::sync::LazyLock;

use baton_lab::network::Network;

use crate::agent::{Cluster, Connection, Place, VIPS};

/// Bytes that no shift leaves as they are.
pub(crate) fn pattern() -> &'static [u8] {
    static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let numbers = 0..(BYTES_MAX / 8) as u64;
        numbers.flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()).collect()
    });
    &PATTERN
}

/// Sends `bytes` from `from` to `to`, and compares.
fn transfer(from: &mut (impl Write + Send), to: &mut impl Read, bytes: usize) {
    let sent = &pattern()[..bytes];
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(sent).unwrap());
        let mut received = vec![0; bytes];
        to.read_exact(&mut received).unwrap();
        // Without printing megabytes.
        let wrong =
            (received != sent).then(|| received.iter().zip(sent).position(|(here, there)| here != there));
        assert_eq!(wrong, None, "the first wrong byte");
    });
}

const BYTES_MAX: usize = 20 << 20;

/// A download and an upload of so many bytes.
pub(crate) fn both_ways(connection: &mut Connection, bytes: usize) {
    transfer(&mut connection.server, &mut connection.client, bytes);
    transfer(&mut connection.client, &mut connection.server, bytes);
}

/// Goal: long transfers on a moved connection are right to the byte: segments that are joined and split on their way through
/// the front-end included. Method: 20 MB down and 3 MB up on a node, 3 MB each way on the others, over both families.
#[test]
fn long_transfers_are_right() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    for vip in VIPS {
        let listener = cluster.listen(vip);
        let mut connection = cluster.connect(&listener);
        for (place, down) in [(Place::Node(0), BYTES_MAX), (Place::Node(1), 3 << 20), (Place::Front, 3 << 20)]
        {
            connection = cluster.move_to(connection, place);
            transfer(&mut connection.server, &mut connection.client, down);
            transfer(&mut connection.client, &mut connection.server, 3 << 20);
        }
    }
    cluster.assert_nothing_went_wrong();
}
