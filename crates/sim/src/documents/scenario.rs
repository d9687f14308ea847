//! One run: servers, clients, and what the policy is set to.

use std::fmt;
use std::str::FromStr;

use baton_dispatch::migration::MigrationSettings;

use crate::trace::{Parameters, ParametersError};

/// One run.
#[derive(Clone, Debug)]
pub struct DocumentScenario {
    /// Servers: the home server of all documents, and its peers.
    pub servers: usize,
    /// Clients per server. Each is always waiting for something.
    pub clients_per_server: usize,
    /// Simulated time, in seconds.
    pub seconds: u64,
    /// A page that becomes hot.
    pub hot: Option<HotPage>,
    /// The policy's settings.
    pub migration: MigrationSettings,
    /// What a server and a client are.
    pub machine: Machine,
    /// What random choices start from.
    pub seed: u64,
}

/// A page that becomes hot in the middle of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotPage {
    /// The share of walks that begin there from then on, by its address at home; above 0, up to 1.
    pub share: f64,
}

/// What servers and clients are. As text: `connection_us=5000,queue=100`, each optional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// What a connection costs a server, be it for a redirect, in microseconds.
    pub connection_us: f64,
    /// What sending a kilobyte costs it, in microseconds.
    pub kb_us: f64,
    /// Connections that wait at a server; of more, clients are told to come again later.
    pub queue: f64,
    /// How long a peer serves a copy without asking the home server whether it has changed (T_val), in seconds.
    pub validate_s: f64,
    /// The most pages of a walk; walks have one to so many.
    pub steps: f64,
    /// Embedded objects that a client requests at a time.
    pub helpers: f64,
}

impl Default for Machine {
    fn default() -> Self {
        // The last four are those of Baker and Moon, 1999, at second hand (decision 0052). The first two make a server of 200 connections per second behind a
        // hundred megabits.
        Self {
            connection_us: 5000.0,
            kb_us: 80.0,
            queue: 100.0,
            validate_s: 120.0,
            steps: 25.0,
            helpers: 4.0,
        }
    }
}

impl DocumentScenario {
    /// The published clients and settings, for a single server.
    #[must_use]
    pub fn published() -> Self {
        Self {
            servers: 1,
            clients_per_server: 24,
            seconds: 36_000,
            hot: None,
            migration: MigrationSettings::default(),
            machine: Machine::default(),
            seed: 1,
        }
    }

    /// Reads settings of the policy, of servers and of clients.
    ///
    /// # Errors
    /// An unknown name, no number, or one out of range.
    pub fn set(&mut self, text: &str) -> Result<(), ParametersError> {
        let migration = &mut self.migration;
        let machine = &mut self.machine;
        let mut times = [migration.statistics_us, migration.ping_us, migration.peer_us, migration.recall_us]
            .map(|us| us as f64 / 1e6);
        let mut counts = [migration.threshold_permille, migration.imbalance_percent].map(f64::from);
        let [statistics_s, ping_s, peer_s, recall_s] = &mut times;
        let [threshold_permille, imbalance_percent] = &mut counts;
        Parameters::new("statistics_s=10,ping_s=20,peer_s=60,recall_s=300,threshold_permille=10,imbalance_percent=120,connection_us=5000,kb_us=80,queue=100,validate_s=120,steps=25,helpers=4")
            .number("statistics_s", 0.1..=1e5, statistics_s)
            .number("ping_s", 0.1..=1e5, ping_s)
            .number("peer_s", 0.0..=1e6, peer_s)
            .number("recall_s", 0.0..=1e6, recall_s)
            .number("threshold_permille", 0.0..=1000.0, threshold_permille)
            .number("imbalance_percent", 100.0..=1e5, imbalance_percent)
            .number("connection_us", 1.0..=1e7, &mut machine.connection_us)
            .number("kb_us", 0.0..=1e6, &mut machine.kb_us)
            .number("queue", 1.0..=1e6, &mut machine.queue)
            .number("validate_s", 0.0..=1e6, &mut machine.validate_s)
            .number("steps", 1.0..=1e6, &mut machine.steps)
            .number("helpers", 1.0..=100.0, &mut machine.helpers)
            .read(text)?;
        [migration.statistics_us, migration.ping_us, migration.peer_us, migration.recall_us] =
            times.map(|seconds| (seconds * 1e6) as u64);
        [migration.threshold_permille, migration.imbalance_percent] = counts.map(|count| count as u32);
        Ok(())
    }
}

impl fmt::Display for HotPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", 100.0 * self.share)
    }
}

impl FromStr for HotPage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent: Option<f64> = text.strip_suffix('%').and_then(|number| number.parse().ok());
        let share = percent.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 1.0);
        share.map(|share| Self { share }).ok_or_else(|| "expected a share above 0 %, like 30%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_refused() {
        let mut scenario = DocumentScenario::published();
        scenario.set("peer_s=0.5,threshold_permille=1,steps=3").unwrap();
        let migration =
            MigrationSettings { peer_us: 500_000, threshold_permille: 1, ..MigrationSettings::default() };
        assert_eq!((&scenario.migration, scenario.machine.steps), (&migration, 3.0));
        for wrong in ["imbalance_percent=99", "speed=3", "queue", "steps=0"] {
            assert!(scenario.set(wrong).is_err(), "{wrong}");
        }
        assert_eq!("30%".parse(), Ok(HotPage { share: 0.3 }));
        for wrong in ["0%", "30", "101%", "x%"] {
            assert!(wrong.parse::<HotPage>().is_err(), "{wrong}");
        }
    }
}
