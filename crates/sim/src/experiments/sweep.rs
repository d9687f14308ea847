//! Runs that differ in policy and number of nodes: what most figures are made of.

use baton_dispatch::PolicyName;
use baton_figures::{Figure, Line};

use super::{Lab, Plan, Workload};
use crate::model::{Outcome, Scenario};
use crate::report::Run;

/// The numbers of nodes of the published figures.
pub(super) const NODES: [usize; 9] = [1, 2, 4, 6, 8, 10, 12, 14, 16];

/// The policies of the published figures.
pub(super) const POLICIES: [PolicyName; 6] = [
    PolicyName::LardR,
    PolicyName::Lard,
    PolicyName::WrrGms,
    PolicyName::LbGc,
    PolicyName::Lb,
    PolicyName::Wrr,
];

/// Runs by policy and number of nodes.
#[derive(Clone, Debug)]
pub struct Sweep {
    policies: Vec<PolicyName>,
    nodes: Vec<usize>,
    runs: Vec<Run>,
}

impl Sweep {
    /// Runs each policy with each number of nodes, in the published setting changed by `change`.
    pub fn run(
        lab: &mut Lab<'_>,
        workload: Workload,
        policies: &[PolicyName],
        nodes: &[usize],
        variant: &str,
        change: impl Fn(&mut Scenario),
    ) -> Self {
        let plan = |policy, nodes| {
            let mut scenario = Scenario::published(policy, nodes);
            change(&mut scenario);
            Plan { workload, scenario, variant: variant.to_owned() }
        };
        let plans: Vec<Plan> = policies
            .iter()
            .flat_map(|&policy| nodes.iter().map(move |&nodes| (policy, nodes)))
            .map(|(policy, nodes)| plan(policy, nodes))
            .collect();
        let what = format!("{workload} {variant}");
        Self { policies: policies.to_vec(), nodes: nodes.to_vec(), runs: lab.run(what.trim(), &plans) }
    }

    /// The outcome of a policy with so many nodes.
    ///
    /// # Panics
    /// If that was not run.
    #[must_use]
    pub fn of(&self, policy: PolicyName, nodes: usize) -> &Outcome {
        let row = self.policies.iter().position(|known| *known == policy).expect("the policy was run");
        let column =
            self.nodes.iter().position(|known| *known == nodes).expect("this number of nodes was run");
        &self.runs[row * self.nodes.len() + column].outcome
    }

    /// A policy's throughput, in requests a second.
    #[must_use]
    pub fn throughput(&self, policy: PolicyName, nodes: usize) -> f64 {
        self.of(policy, nodes).throughput
    }

    /// A line over the number of nodes.
    #[must_use]
    pub fn line(&self, policy: PolicyName, name: &str, value: impl Fn(&Outcome) -> f64) -> Line {
        let points = self.nodes.iter().map(|&nodes| (nodes as f64, value(self.of(policy, nodes))));
        Line::exact(name.to_owned(), points)
    }

    /// A figure with a line for each policy over the number of nodes.
    #[must_use]
    pub fn figure(&self, name: &str, title: &str, y: &str, value: impl Fn(&Outcome) -> f64) -> Figure {
        Figure {
            name: name.into(),
            title: title.into(),
            x: "nodes".into(),
            y: y.into(),
            lines: self.policies.iter().map(|policy| self.line(*policy, policy.as_str(), &value)).collect(),
            ..Figure::default()
        }
    }

    /// All runs.
    #[must_use]
    pub fn into_runs(self) -> Vec<Run> {
        self.runs
    }
}
