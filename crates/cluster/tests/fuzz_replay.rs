//! Replays the corpora of the fuzz targets.

#[path = "../../../fuzz/src/cluster.rs"]
pub mod cluster;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn messages_of_workers() {
    replay::replay("cluster_local", cluster::local);
}

#[test]
fn streams_of_agents() {
    replay::replay("cluster_peer", cluster::peer);
}
