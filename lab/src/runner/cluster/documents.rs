//! What the simulator says of servers that lend each other documents: a site like that of the lab, and servers that send as fast.

use anyhow::{Context, Result};
use baton_sim::compare_documents;
use baton_sim::documents::{DocumentScenario, SiteParameters};
use baton_sim::runner::Runner;

use crate::experiment::SimulatedDocuments;

/// Documents a second in the last third, when so many visitors come to so many servers.
///
/// # Errors
/// The text has an unknown word, or a number out of range.
pub(in crate::runner) fn predict_documents(
    SimulatedDocuments { site, set }: &SimulatedDocuments,
    (servers, visitors): (usize, usize),
    seconds: u64,
) -> Result<f64> {
    let site = SiteParameters::parse(site)?.site("cell", 1);
    let clients_per_server = visitors.div_ceil(servers);
    let mut scenario = DocumentScenario { clients_per_server, seconds, ..DocumentScenario::published() };
    scenario.set(set)?;
    let report = compare_documents(Runner::new(1, &|_, _| ()), &[site], &scenario, &[servers], None);
    Ok(report.documents.first().context("the simulator has no outcome")?.connections_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_help_are_predicted_to_send_more() {
        let of_text = |set: &str| SimulatedDocuments {
            site: "pages=12,entries=12,links=11,page_kb=0.8,images=8,image_kb=8".into(),
            set: set.into(),
        };
        let documents = of_text(
            "statistics_s=0.166,ping_s=0.333,peer_s=1,recall_s=5,connection_us=200,kb_us=512,steps=1,helpers=1",
        );
        let rates = [1, 4].map(|servers| predict_documents(&documents, (servers, 64), 120).unwrap());
        assert!(rates[1] > 2.0 * rates[0], "{rates:?}");
        assert!(predict_documents(&of_text("speed=3"), (1, 64), 120).is_err());
    }
}
