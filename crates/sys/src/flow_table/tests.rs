//! The program's verdicts on packets that have not arrived anywhere (`BPF_PROG_TEST_RUN`), and the table's own book.

use super::program::{VERDICT_DROP, VERDICT_PASS, VERDICT_REDIRECT};
use super::*;

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A table, unless the kernel or the process's rights have none.
fn table(flows_max: u32) -> Option<FlowTable> {
    match FlowTable::create(flows_max) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("LEFT OUT of the tests of flow_table: {error}: needs root");
            None
        }
        table => Some(table.unwrap()),
    }
}

fn v4(port: u16) -> Flow {
    Flow { client: SocketAddr::from(([192, 0, 2, 7], port)), vip: "10.77.0.100:80".parse().unwrap() }
}

fn v6(port: u16) -> Flow {
    let client = SocketAddr::new("2001:db8::7".parse().unwrap(), port);
    Flow { client, vip: "[fd77::64]:80".parse().unwrap() }
}

/// Over the loopback interface: verdicts are tried, nothing is sent.
fn to(address: &str) -> NextHop {
    NextHop { interface: 1, address: address.parse().unwrap() }
}

/// A segment of the flow in an Ethernet frame. `options`: bytes of IPv4 options.
fn packet(flow: Flow, flags: u8, options: usize) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    match (flow.client.ip(), flow.vip.ip()) {
        (IpAddr::V4(client), IpAddr::V4(vip)) => {
            bytes.extend([8, 0, 0x45 + (options / 4) as u8, 0]);
            bytes.extend((40 + options as u16).to_be_bytes());
            bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            bytes.extend(client.octets());
            bytes.extend(vip.octets());
            bytes.extend(vec![1; options]);
        }
        (IpAddr::V6(client), IpAddr::V6(vip)) => {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
            bytes.extend(client.octets());
            bytes.extend(vip.octets());
        }
        _ => unreachable!(),
    }
    bytes.extend(flow.client.port().to_be_bytes());
    bytes.extend(flow.vip.port().to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn packets_are_held_forwarded_and_passed() {
    let Some(mut table) = table(8) else { return };
    for (flow, other, node) in [(v4(1), v4(2), "10.77.0.4"), (v6(1), v6(2), "fd77::4")] {
        let verdict = |table: &FlowTable, flow| table.arriving.try_out(&packet(flow, ACK, 0)).unwrap();
        assert_eq!(verdict(&table, flow), VERDICT_PASS);
        table.hold(flow).unwrap();
        assert_eq!(verdict(&table, flow), VERDICT_DROP);
        assert_eq!(verdict(&table, other), VERDICT_PASS);
        assert_eq!(verdict(&table, Flow { client: flow.vip, vip: flow.client }), VERDICT_PASS);
        table.forward(flow, to(node)).unwrap();
        assert_eq!(verdict(&table, flow), VERDICT_REDIRECT);
        table.hold(flow).unwrap();
        assert_eq!(verdict(&table, flow), VERDICT_DROP);

        let report = table.report(flow).unwrap();
        let length = packet(flow, ACK, 0).len() as u64;
        assert_eq!((report.next_hop, report.packets, report.bytes), (None, 3, 3 * length));
        assert!(!report.fin && !report.rst && !report.replaced);
        assert!(table.remove(flow));
        assert_eq!(verdict(&table, flow), VERDICT_PASS);
        assert!(!table.remove(flow));
        assert!(table.report(flow).is_none() && table.is_empty());
    }
}

#[test]
fn ends_are_seen() {
    let Some(mut table) = table(8) else { return };
    for flow in [v4(1), v6(1)] {
        table.hold(flow).unwrap();
        table.arriving.try_out(&packet(flow, 1 | ACK, 0)).unwrap();
        assert!(matches!(table.report(flow), Some(FlowReport { fin: true, rst: false, .. })));
        table.arriving.try_out(&packet(flow, 4, 0)).unwrap();
        assert!(matches!(table.report(flow), Some(FlowReport { fin: true, rst: true, .. })));
    }
}

/// Goal: a SYN on a living connection may be forged, so the node is asked; behind an end, it waits.
#[test]
fn a_syn_alone_replaces_no_flow() {
    let Some(mut table) = table(8) else { return };
    for (flow, node) in [(v4(1), "10.77.0.4"), (v6(1), "fd77::4")] {
        let verdict = |table: &FlowTable, flags| table.arriving.try_out(&packet(flow, flags, 0)).unwrap();
        table.hold(flow).unwrap();
        assert_eq!(verdict(&table, SYN), VERDICT_DROP);
        table.forward(flow, to(node)).unwrap();
        assert_eq!(verdict(&table, SYN), VERDICT_REDIRECT);
        assert_eq!(verdict(&table, FIN | ACK), VERDICT_REDIRECT);
        assert_eq!(verdict(&table, SYN), VERDICT_DROP);
        assert!(!table.report(flow).unwrap().replaced);
        table.end(flow);
        assert_eq!(verdict(&table, ACK), VERDICT_REDIRECT, "last packets");
        assert_eq!(verdict(&table, SYN), VERDICT_PASS);
        assert!(table.report(flow).unwrap().replaced);
        table.remove(flow);
        // The slot is used again.
        table.hold(flow).unwrap();
        assert_eq!(verdict(&table, SYN), VERDICT_DROP);
        table.remove(flow);
    }
}

/// Goal: a client that uses its port anew gets a new connection, and the flow can be added again. A SYN with ACK is no
/// beginning.
#[test]
fn a_syn_replaces_the_flow() {
    let Some(mut table) = table(8) else { return };
    for flow in [v4(1), v6(1)] {
        table.hold(flow).unwrap();
        table.end(flow);
        assert_eq!(table.arriving.try_out(&packet(flow, SYN | ACK, 0)).unwrap(), VERDICT_DROP);
        assert!(!table.report(flow).unwrap().replaced);
        for flags in [SYN, ACK] {
            assert_eq!(table.arriving.try_out(&packet(flow, flags, 0)).unwrap(), VERDICT_PASS);
        }
        assert!(table.report(flow).unwrap().replaced);
        let refused = table.forward(flow, to("fd77::4")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        table.hold(flow).unwrap();
        assert!(!table.report(flow).unwrap().replaced);
        assert_eq!(table.arriving.try_out(&packet(flow, ACK, 0)).unwrap(), VERDICT_DROP);
        table.remove(flow);
    }
}

/// Goal: the own stack says nothing on a connection that is in the table, and nothing else is hindered.
#[test]
fn the_own_stack_is_silent_on_flows() {
    const RST: u8 = 4;
    let Some(mut table) = table(8) else { return };
    for (flow, other, options) in [(v4(1), v4(2), 4), (v6(1), v6(2), 0)] {
        let back = |flow: Flow| Flow { client: flow.vip, vip: flow.client };
        let verdict = |table: &FlowTable, flow, flags| {
            table.leaving.try_out(&packet(back(flow), flags, options)).unwrap()
        };
        table.hold(flow).unwrap();
        assert_eq!(verdict(&table, flow, RST), VERDICT_DROP);
        assert_eq!(verdict(&table, flow, ACK), VERDICT_DROP);
        assert_eq!(verdict(&table, other, RST), VERDICT_PASS);
        assert_eq!(verdict(&table, back(flow), ACK), VERDICT_PASS);
        let report = table.report(flow).unwrap();
        assert_eq!((report.own_packets, report.packets, report.rst), (2, 0, false));
        // Once the client has begun anew, the own stack answers.
        table.end(flow);
        table.arriving.try_out(&packet(flow, SYN, 0)).unwrap();
        assert_eq!(verdict(&table, flow, SYN | ACK), VERDICT_PASS);
        table.remove(flow);
        assert_eq!(verdict(&table, flow, ACK), VERDICT_PASS);
    }
}

/// Goal: headers are found where they are, and what has no TCP header goes to the own stack. Method: options of IPv4,
/// fragments, other protocols, and each packet cut off anywhere.
#[test]
fn headers_are_found_where_they_are() {
    let Some(mut table) = table(8) else { return };
    for flow in [v4(1), v6(1)] {
        table.hold(flow).unwrap();
        let whole = packet(flow, ACK, 0);
        let (fragment, protocol) = if flow.client.is_ipv4() { (Some(20), 23) } else { (None, 20) };
        let mut udp = whole.clone();
        udp[protocol] = 17;
        assert_eq!(table.arriving.try_out(&udp).unwrap(), VERDICT_PASS);
        if let Some(at) = fragment {
            for offset in [[0x20, 0], [0, 1]] {
                let mut fragment = whole.clone();
                fragment[at..at + 2].copy_from_slice(&offset);
                assert_eq!(table.arriving.try_out(&fragment).unwrap(), VERDICT_PASS);
            }
            assert_eq!(table.arriving.try_out(&packet(flow, ACK, 40)).unwrap(), VERDICT_DROP);
            let mut short = whole.clone();
            short[14] = 0x44;
            assert_eq!(table.arriving.try_out(&short).unwrap(), VERDICT_PASS);
        }
        let flags_at = whole.len() - 20 + 13;
        // The kernel refuses to try packets without a whole Ethernet header and a byte or more behind it.
        for length in 15..whole.len() {
            if let Ok(verdict) = table.arriving.try_out(&whole[..length]) {
                assert_eq!(
                    verdict,
                    if length > flags_at { VERDICT_DROP } else { VERDICT_PASS },
                    "{length} bytes"
                );
            }
        }
    }
}

/// Goal: a full table says so, and its slots are used again; packets of IPv6 are not sent to IPv4 addresses.
#[test]
fn bounds_are_kept() {
    let Some(mut table) = table(2) else { return };
    for turn in 0..10 {
        table.hold(v4(turn)).unwrap();
        table.hold(v6(turn)).unwrap();
        assert_eq!(table.hold(v4(turn + 1)).unwrap_err().kind(), io::ErrorKind::StorageFull);
        table.forward(v4(turn), to("10.77.0.4")).unwrap();
        table.forward(v6(turn), to("fd77::4")).unwrap();
        let refused = table.forward(v6(turn), to("10.77.0.4")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        let hops = [v4(turn), v6(turn)].map(|flow| table.report(flow).unwrap().next_hop);
        assert_eq!(hops, [Some(to("10.77.0.4")), Some(to("fd77::4"))]);
        assert_eq!(table.reports().filter(|(_, report)| report.next_hop.is_some()).count(), 2);
        assert!(table.remove(v4(turn)) && table.remove(v6(turn)));
    }
    let mixed = Flow { client: v4(1).client, vip: v6(1).vip };
    assert_eq!(table.hold(mixed).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(table.forward(v4(1), to("10.77.0.4")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(FlowTable::create(0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(table.attach(u32::MAX >> 1).unwrap_err().raw_os_error(), Some(libc::ENODEV));
}

/// Goal: more nodes come and go than the table has next hops.
#[test]
fn next_hops_make_room() {
    let Some(mut table) = table(2 * NEXT_HOPS_MAX) else { return };
    let node = |number: u32| NextHop { interface: 1, address: IpAddr::V4((0x0a00_0000 + number).into()) };
    let flow = |number: u32| v4(number as u16);
    for number in 0..=NEXT_HOPS_MAX {
        table.hold(flow(number)).unwrap();
    }
    for number in 0..NEXT_HOPS_MAX {
        table.forward(flow(number), node(number)).unwrap();
    }
    let another = (flow(NEXT_HOPS_MAX), node(NEXT_HOPS_MAX));
    assert_eq!(table.forward(another.0, another.1).unwrap_err().kind(), io::ErrorKind::StorageFull);
    table.forward(flow(7), node(8)).unwrap();
    table.forward(another.0, another.1).unwrap();
    assert_eq!(table.report(another.0).unwrap().next_hop, Some(another.1));
    assert_eq!(table.report(flow(7)).unwrap().next_hop, Some(node(8)));
}
