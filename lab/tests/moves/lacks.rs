//! What hosts lack for a hand-off is found before the first one.

use std::net::IpAddr;

use baton_lab::network::{ClusterHosts, Host, Network};
use baton_sys::handoff::{Lack, front_end_lacks, node_lacks};

use crate::agent::{PORT, VIPS};

/// Goal: hosts that can hand over lack nothing, and each mistake in their addresses is named. Method: the hosts of the other
/// tests; a host without the VIP, one that answers for it, a front-end that does not, a node behind a router.
#[test]
fn what_hosts_lack_is_named() {
    if Network::is_left_out() {
        return;
    }
    let mut hosts = ClusterHosts::new(2).unwrap();
    let other = hosts.network.join("other").unwrap();
    let at_node = |host: &Host, vip| host.run(|| node_lacks(vip, PORT));
    for vip in VIPS {
        let nodes: Vec<IpAddr> = match vip {
            IpAddr::V4(_) => hosts.nodes.iter().map(|node| node.v4().into()).collect(),
            IpAddr::V6(_) => hosts.nodes.iter().map(|node| node.v6().into()).collect(),
        };
        let lacks = hosts.front.run(|| front_end_lacks(vip, PORT, &nodes));
        assert!(lacks.is_empty(), "{lacks:?}");
        assert!(at_node(&hosts.nodes[0], vip).is_empty());

        let far: IpAddr = "192.0.2.1".parse().unwrap();
        let lacks = hosts.nodes[0].run(|| front_end_lacks(vip, PORT, &[far]));
        assert!(
            matches!(&lacks[..], [Lack::VipSilent(_), Lack::NotNeighbour(node)] if *node == far),
            "{lacks:?}"
        );

        let lacks = at_node(&other, vip);
        assert!(matches!(lacks[..], [Lack::NoVip(_)]), "{lacks:?}");
        other.announce(vip).unwrap();
        let lacks = at_node(&other, vip);
        assert!(matches!(lacks[..], [Lack::VipAnnounced(..)]), "{lacks:?}");
    }
    // On the loopback interface alone the kernel still answers ARP for it.
    let careless = hosts.network.join("careless").unwrap();
    careless.ip(&format!("addr add {}/32 dev lo\n", ClusterHosts::VIP_V4)).unwrap();
    let lacks = at_node(&careless, VIPS[0]);
    assert!(matches!(&lacks[..], [Lack::VipAnnounced(_, name)] if name == "eth0"), "{lacks:?}");
    assert!(lacks[0].remedy().contains("arp_ignore=1"));
}
