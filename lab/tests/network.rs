//! Hosts in namespaces: they reach each other, the VIP leads to the front-end, and nothing of them stays.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use baton_lab::network::{ClusterHosts, Host, Network};

/// Goal: clients reach the front-end by the VIP, over IPv4 and IPv6, though each node has it, too. Method: each host listens
/// on the VIP and says its name; a node, asked by its own address, says its own.
#[test]
fn the_vip_leads_to_the_front_end() {
    if Network::is_left_out() {
        return;
    }
    let hosts = ClusterHosts::new(2).unwrap();
    for any in [IpAddr::from([0; 4]), IpAddr::from([0; 16])] {
        let port = SocketAddr::new(any, 80);
        for (host, name) in [(&hosts.front, "front"), (&hosts.nodes[0], "node1"), (&hosts.nodes[1], "node2")]
        {
            say(host, port, name.to_owned());
        }
    }
    let ask = |address| ask(&hosts.client, address);
    for _ in 0..3 {
        assert_eq!(ask(ClusterHosts::VIP_V4.into()), "front");
        assert_eq!(ask(ClusterHosts::VIP_V6.into()), "front");
    }
    assert_eq!(ask(hosts.nodes[1].v4().into()), "node2");
    assert_eq!(ask(hosts.nodes[0].v6().into()), "node1");
    assert_eq!(hosts.client.counter("Tcp", "ActiveOpens").unwrap(), 8);
    assert_eq!(hosts.client.counter("TcpExt", "TCPTimeouts").unwrap(), 0);
}

/// Goal: a client's connections are spread over all front-ends. Method: each says its number, and is missed by 64 connections with
/// a probability of 1 in 10^11.
#[test]
fn the_vip_leads_to_each_of_several_front_ends() {
    if Network::is_left_out() {
        return;
    }
    let mut hosts = ClusterHosts::new(1).unwrap();
    (0..2).for_each(|_| hosts.another_front().unwrap());
    for (number, host) in hosts.fronts().enumerate() {
        say(host, SocketAddr::new(IpAddr::from([0; 4]), 80), number.to_string());
    }
    let said: BTreeSet<_> = (0..64).map(|_| ask(&hosts.client, ClusterHosts::VIP_V4.into())).collect();
    assert_eq!(said.into_iter().collect::<Vec<_>>(), ["0", "1", "2"]);
}

/// Goal: a host goes with its processes, and what a killed run leaves behind goes with the next one. Method: a process
/// that would sleep for a day; a namespace with the name of a process that is gone.
#[test]
fn nothing_stays_behind() {
    if Network::is_left_out() {
        return;
    }
    let gone = ended_process();
    let left_behind = format!("baton-lab-{gone}-0-front");
    assert!(Command::new("ip").args(["netns", "add", &left_behind]).status().unwrap().success());
    let mut network = Network::new().unwrap();
    assert!(fs::metadata(format!("/run/netns/{left_behind}")).is_err());

    let host = network.join("host").unwrap();
    let mut sleeper = host.command("sleep").arg("86400").spawn().unwrap();
    // `ip` enters the namespace before it becomes the program.
    let limit = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(format!("/proc/{}/comm", sleeper.id())).unwrap() != "sleep\n" {
        assert!(Instant::now() < limit, "the command does not start");
        std::thread::yield_now();
    }
    let ours = || {
        let prefix = format!("baton-lab-{}-", std::process::id());
        let names = fs::read_dir("/run/netns")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&prefix) && name.ends_with("-host")).count()
    };
    assert_eq!(ours(), 1);
    drop(host);
    assert_eq!(ours(), 0);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&sleeper.wait().unwrap()), Some(9));
}

/// Lets a host say its name to each client.
fn say(host: &Host, address: SocketAddr, name: String) {
    let listener = host.run(|| listen(address));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            client.unwrap().write_all(name.as_bytes()).unwrap();
        }
    });
}

fn ask(client: &Host, address: IpAddr) -> String {
    client.run(|| {
        let mut said = String::new();
        TcpStream::connect((address, 80)).unwrap().read_to_string(&mut said).unwrap();
        said
    })
}

/// Over IPv6 only IPv6, or the other listener of the port would be in the way.
fn listen(address: SocketAddr) -> TcpListener {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).unwrap();
    }
    bind(&socket, &address).unwrap();
    listen(&socket, 64).unwrap();
    socket.into()
}

fn ended_process() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}
