//! What the metrics page says of the view of the cluster's nodes.

use std::fmt::Write as _;

use baton_membership::{EtcdReport, Member};

use super::exposition::begin;

/// The lines: how many nodes are known from elsewhere than the configuration, and how etcd is.
pub(crate) fn page(members: &[Member], etcd: Option<&EtcdReport>, age_s: Option<u64>) -> String {
    let mut page = String::new();
    let Some(etcd) = etcd else { return page };
    let held = members.iter().filter(|member| member.held).count();
    let is_up = etcd.error.is_none() && etcd.revision > 0;
    for (name, kind, help, value) in [
        ("baton_cluster_members", "gauge", "Nodes that etcd and DNS know.", members.len() as u64),
        ("baton_cluster_members_held", "gauge", "Nodes that etcd has lost and that count.", held as u64),
        ("baton_cluster_etcd_up", "gauge", "Whether etcd answers.", u64::from(is_up)),
        (
            "baton_cluster_view_age_seconds",
            "gauge",
            "Age of the view of etcd; 0: it answers.",
            age_s.unwrap_or(0),
        ),
        (
            "baton_cluster_view_revision",
            "gauge",
            "Revision of etcd that counts.",
            etcd.revision.unsigned_abs(),
        ),
        ("baton_cluster_etcd_losses_total", "counter", "Times that etcd had lost data.", etcd.losses),
        (
            "baton_cluster_values_skipped",
            "gauge",
            "Values in etcd that do not count.",
            etcd.skipped.len() as u64,
        ),
    ] {
        begin(&mut page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_view_shows() {
        let etcd = EtcdReport { error: Some("away".into()), revision: 7, losses: 1, ..EtcdReport::default() };
        let page = page(&[], Some(&etcd), Some(42));
        for line in [
            "baton_cluster_etcd_up 0",
            "baton_cluster_view_age_seconds 42",
            "baton_cluster_view_revision 7",
            "baton_cluster_etcd_losses_total 1",
        ] {
            assert!(page.lines().any(|one| one == line), "{line} in\n{page}");
        }
        assert_eq!(super::page(&[], None, None), "");
    }
}
