//! Connections over loopback that end and are made anew on the same host.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::*;

fn is_left_out() -> bool {
    let refused = self_test();
    if let Err(error) = &refused {
        eprintln!("LEFT OUT of the tests of tcp_repair: {error}: needs root");
    }
    refused.is_err()
}

/// A client and the server's end, over loopback.
fn pair(address: impl Into<std::net::IpAddr>) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((address.into(), 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    (client, server)
}

/// Reads a state and ends the socket, as the host that gives it away does.
fn give_away(server: TcpStream) -> TcpState {
    freeze(&server).unwrap();
    let state = dump(&server).unwrap();
    end(&server).unwrap();
    state
}

/// Goes by bytes, as between two hosts.
fn take(state: &TcpState) -> TcpStream {
    let state = TcpState::from_bytes(&state.to_bytes()).unwrap();
    let socket = restore(&state).unwrap();
    thaw(&socket).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Goal: a connection goes on after it was made anew, with the input that was not read. Method: 20 times, over IPv4, IPv6 and
/// IPv4 in IPv6, while another process's copy of the old socket stays open.
#[test]
fn a_connection_goes_on() {
    if is_left_out() {
        return;
    }
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    let mapped_client = TcpStream::connect((Ipv4Addr::LOCALHOST, both.local_addr().unwrap().port())).unwrap();
    let mapped = (mapped_client, both.accept().unwrap().0);
    for (mut client, mut server) in [pair(Ipv4Addr::LOCALHOST), pair(Ipv6Addr::LOCALHOST), mapped] {
        let peer = client.local_addr().unwrap();
        let mut copies = Vec::new();
        for turn in 0..20_u8 {
            client.write_all(&[turn, 1, 2]).unwrap();
            let mut read = [0; 1];
            server.read_exact(&mut read).unwrap();
            // On a slow machine a delayed acknowledgement would arrive while there is no socket, and be answered by a reset.
            sockopt::set_tcp_quickack(&client, true).unwrap();
            server.write_all(&[turn]).unwrap();
            client.read_exact(&mut read).unwrap();
            assert_eq!(read, [turn]);
            copies.push(server.try_clone().unwrap());
            let state = give_away(server);
            assert_eq!((state.peer, &state.unread[..]), (peer, &[1, 2][..]));
            server = take(&state);
            let mut unread = [0; 2];
            server.read_exact(&mut unread).unwrap();
            assert_eq!(unread, [1, 2]);
            assert_eq!(copies[0].peer_addr().unwrap_err().kind(), io::ErrorKind::NotConnected);
        }
        drop(server);
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
}

/// Goal: the socket has the options that both ends agreed on, and the one that the server chose.
#[test]
fn options_stay() {
    if is_left_out() {
        return;
    }
    let (_client, server) = pair(Ipv4Addr::LOCALHOST);
    server.set_nodelay(true).unwrap();
    let before = give_away(server);
    assert!(before.selective_acks && before.window_scales.receive > 0 && before.timestamp.is_some());
    let after = give_away(take(&before));
    let clock = |state: &TcpState| state.timestamp.unwrap() & 1;
    assert_eq!(clock(&after), clock(&before));
    assert_eq!(TcpState { timestamp: before.timestamp, window: before.window, ..after }, before);
}

/// Goal: what is received or acknowledged while a state is read is noticed.
#[test]
fn what_arrives_is_counted() {
    if is_left_out() {
        return;
    }
    let (mut client, mut server) = pair(Ipv4Addr::LOCALHOST);
    let seen = |server: &TcpStream| info(server).unwrap()[TCP_INFO_RECEIVED].to_vec();
    let begun = seen(&server);
    client.write_all(b"abc").unwrap();
    server.read_exact(&mut [0; 3]).unwrap();
    let received = seen(&server);
    server.write_all(b"de").unwrap();
    client.read_exact(&mut [0; 2]).unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while seen(&server) == received {
        assert!(Instant::now() < limit, "the client does not acknowledge");
    }
    assert_ne!(begun, received);
}

/// Goal: what must not or cannot move says why, and goes on where it is.
#[test]
fn what_cannot_move_says_why() {
    if is_left_out() {
        return;
    }
    let (mut client, mut server) = pair(Ipv4Addr::LOCALHOST);
    // The client reads nothing, so that its window fills.
    server.set_nonblocking(true).unwrap();
    let mut written = 0;
    while let Ok(bytes) = server.write(&[7; 1 << 16]) {
        written += bytes;
    }
    server.set_nonblocking(false).unwrap();
    freeze(&server).unwrap();
    let refused = dump(&server).unwrap_err();
    assert!(matches!(refused, CannotMove::Unsent(bytes) if bytes > 0), "{refused}");
    thaw(&server).unwrap();
    let mut received = vec![0; written];
    client.read_exact(&mut received).unwrap();
    assert!(received.iter().all(|byte| *byte == 7));

    client.write_all(&[8; QUEUE_BYTES_MAX + 1]).unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while rustix::io::ioctl_fionread(&server).unwrap() <= QUEUE_BYTES_MAX as u64 {
        assert!(Instant::now() < limit, "the bytes do not arrive");
    }
    freeze(&server).unwrap();
    let refused = dump(&server).unwrap_err();
    assert!(matches!(refused, CannotMove::Unread(bytes) if bytes == QUEUE_BYTES_MAX + 1), "{refused}");
    thaw(&server).unwrap();
    server.read_exact(&mut [0; QUEUE_BYTES_MAX + 1]).unwrap();

    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
    freeze(&server).unwrap();
    let half_closed = dump(&server).unwrap_err();
    assert!(matches!(half_closed, CannotMove::NotEstablished(8)), "{half_closed}");
    thaw(&server).unwrap();

    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert!(freeze(&udp).is_err());
    assert!(matches!(dump(&udp), Err(CannotMove::NotTcp)));
    assert!(matches!(dump(UnixStream::pair().unwrap().0), Err(CannotMove::NotTcp)));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert!(freeze(&listener).is_err());
    assert!(matches!(dump(&listener), Err(CannotMove::NotEstablished(10))));
}

/// Goal: a connection whose addresses are in use, or not of this host, is refused, and states that are nonsense are, too.
#[test]
fn what_cannot_be_restored_is_refused() {
    if is_left_out() {
        return;
    }
    let (_client, server) = pair(Ipv4Addr::LOCALHOST);
    freeze(&server).unwrap();
    let state = dump(&server).unwrap();
    let refused = |state: &TcpState| restore(state).unwrap_err().raw_os_error();
    assert_eq!(refused(&state), Some(libc::EADDRNOTAVAIL), "the connection is here");
    end(&server).unwrap();
    let elsewhere = TcpState { local: "192.0.2.1:80".parse().unwrap(), ..state.clone() };
    assert_eq!(refused(&elsewhere), Some(libc::EADDRNOTAVAIL));
    let families = TcpState { peer: "[2001:db8::1]:80".parse().unwrap(), ..state.clone() };
    assert!(restore(&families).is_err());
    let window = Window { max_window: 0, snd_wnd: 1, ..state.window };
    assert_eq!(refused(&TcpState { window, ..state.clone() }), Some(libc::EINVAL));
    drop(restore(&state).unwrap());
    drop(take(&state));
}

/// Goal: a server can listen on a port anew while connections of it are restored.
#[test]
fn the_port_can_be_bound_again() {
    if is_left_out() {
        return;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let mut server = take(&give_away(listener.accept().unwrap().0));
    drop(listener);
    let _again = TcpListener::bind(address).unwrap();
    server.write_all(b"x").unwrap();
    client.read_exact(&mut [0; 1]).unwrap();
}
