//! What a file says beside loads and claims: the site, who competes, what is drawn.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use baton_dispatch::PolicyName;
use baton_load::sessions::usual;
use baton_load::site::SiteKind;
use baton_segment::policy::PolicyChoice;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::claim::ClaimText;
use super::procedure_text::ProcedureText;
use super::scalar::Scalar;
use super::sweep::Parameters;
use crate::meters::MeterName;
use crate::quantity::Quantity;
use crate::rig::{BoxSettings, MemoryBound};
use crate::servers::{Ability, SettingTable};

/// The part of a file that is no list of variants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) title: String,
    /// What the figures mean, and how they come about.
    pub(crate) about: Option<String>,
    /// Where the published values are from.
    pub(crate) source: Option<String>,
    /// Rows of `docs/experiments.md`.
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    /// The group of cells that it is on the page of peers.
    pub(crate) peers: Option<String>,
    /// CPUs of each server.
    #[serde(default = "usual::<1>")]
    pub(crate) cpus: usize,
    #[serde(default = "usual::<7>")]
    pub(crate) rounds: usize,
    /// How long a cell is measured.
    #[serde(default = "usual_seconds")]
    pub(crate) seconds: f64,
    /// Load after the start of a server that is not measured: caches fill.
    #[serde(default = "usual_warm_up")]
    pub(crate) warm_up_seconds: f64,
    /// Load in front of each cell that is not measured.
    #[serde(default)]
    pub(crate) lead_seconds: f64,
    #[serde(default)]
    pub(crate) quick: Quick,
    #[serde(default)]
    pub(crate) site: SiteText,
    /// A server with the site's files on the client's CPU, for contenders that pass requests on.
    pub(crate) origin: Option<String>,
    /// Bytes of a packet on the loopback device, which has 64 KiB otherwise. Needs root.
    pub(crate) packet_bytes: Option<u32>,
    /// All servers of a cluster run on the client's CPU, so that packets are received within the call that sends them.
    #[serde(default)]
    pub(crate) one_cpu: bool,
    /// Servers get all loads one after the other, and are not started anew for each.
    #[serde(default)]
    pub(crate) keep_servers: bool,
    /// Bounds of each contender; of a cluster, those of each node.
    #[serde(rename = "box")]
    pub(crate) bounds: Option<BoxSettings>,
    /// What is measured of each contender beside its CPU time.
    #[serde(default)]
    pub(crate) meters: Vec<MeterName>,
    /// A measurement that is no load on contenders, in Rust.
    pub(crate) procedure: Option<ProcedureText>,
    /// How long a procedure takes, in full and in the short form.
    pub(crate) minutes: Option<[f64; 2]>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureText>,
    #[serde(default)]
    pub(crate) published: Vec<PublishedText>,
    #[serde(default)]
    pub(crate) claim: Vec<Spanned<ClaimText>>,
}

/// The short form of an experiment.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Quick {
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
}

/// What is served: a closed list of kinds.
#[derive(Clone, Debug)]
pub(crate) enum SiteText {
    /// Made by the lab.
    Own(OwnSite),
    /// Made after a source, with a script of sessions.
    Made(SiteKind),
}

/// A site that the lab makes.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum OwnSite {
    /// Files of 1, 16 and 100 KB and of 1 MB.
    Fixed,
    /// SPECweb99's directories, 5.1 MB each, with the fixed files, and small ones that are asked for all the time.
    Mix { directories: usize },
    /// A page of 100 KB that compresses as pages do.
    Page,
    /// Pages with images of their own, which link to each other.
    Linked,
}

impl Default for SiteText {
    fn default() -> Self {
        Self::Own(OwnSite::Fixed)
    }
}

impl<'de> Deserialize<'de> for SiteText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        let is_own =
            table.get("kind").and_then(toml::Value::as_str).is_some_and(|kind| OWN_SITES.contains(&kind));
        let site = if is_own { table.try_into().map(Self::Own) } else { table.try_into().map(Self::Made) };
        site.map_err(|error: toml::de::Error| D::Error::custom(error.message()))
    }
}

/// A contender.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContenderText {
    /// As in `lab/servers`.
    pub(crate) server: String,
    /// What it must do beside answering the load, such as `log`.
    #[serde(default)]
    pub(crate) needs: BTreeSet<Ability>,
    /// Settings of the server: its own words, and for Baton any setting.
    #[serde(default)]
    pub(crate) set: SettingTable,
    /// The program behind it, with a pool of its own.
    pub(crate) application: Option<ApplicationText>,
    /// Memory of its box, in place of that which all have.
    pub(crate) memory: Option<MemoryBound>,
    /// What is measured of it, beside that which is measured of all.
    #[serde(default)]
    pub(crate) meters: Vec<MeterName>,
    /// The servers behind it, each on a host of its own: the contender is a cluster.
    pub(crate) nodes: Option<NodesText>,
    /// The policy by which the simulator distributes the same requests.
    #[serde(default, deserialize_with = "policy")]
    pub(crate) simulated: Option<PolicyName>,
    /// The policy by which a simulated cache of the same size, with the same blocks, serves the same sessions.
    #[serde(default, deserialize_with = "policy")]
    pub(crate) simulated_cache: Option<PolicyChoice>,
    /// A site and servers in the simulator that are like these, which lend each other documents.
    pub(crate) simulated_documents: Option<SimulatedDocuments>,
    /// Loads that it gets; none: all.
    #[serde(default)]
    pub(crate) only: Vec<Spanned<String>>,
}

/// What `baton sim documents` is told.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulatedDocuments {
    /// The site: what stands behind `site:`.
    pub(crate) site: String,
    /// Settings of the policy, of servers and of clients, as with `--set`.
    pub(crate) set: String,
}

/// A program behind a contender, as in `lab/servers`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplicationText {
    pub(crate) server: String,
    #[serde(default)]
    pub(crate) set: SettingTable,
}

/// The nodes of a cluster, which are all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodesText {
    /// How many; none: the contender is a server alone on its host.
    pub(crate) count: usize,
    /// How many servers are before them, which share nothing: clients come to all of them.
    #[serde(default = "usual::<1>")]
    pub(crate) front_ends: usize,
    /// As in `lab/servers`.
    #[serde(default = "baton")]
    pub(crate) server: String,
    #[serde(default)]
    pub(crate) needs: BTreeSet<Ability>,
    #[serde(default)]
    pub(crate) set: SettingTable,
    /// Megabits a second that leave the host of each node, at most; of peers, of the server at the front, too.
    pub(crate) link_mbit: Option<u32>,
}

/// A figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureText {
    #[serde(default = "usual_figure")]
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    /// The parameter along the axis.
    #[serde(default = "load")]
    pub(crate) x: Spanned<String>,
    pub(crate) y: Quantity,
    /// Another quantity of the same cells in the same picture, as what a simulator says beside what was measured.
    pub(crate) beside: Option<Quantity>,
    /// The parameter that tells lines apart.
    #[serde(default = "contender")]
    pub(crate) lines: Spanned<String>,
    /// Only cells with these parameters.
    #[serde(default)]
    pub(crate) only: Parameters,
    /// A line to which the others are compared within each round.
    pub(crate) reference: Option<Spanned<String>>,
    /// A place of the axis: published values are drawn in the measure in which the one there stands for ours.
    pub(crate) published_as: Option<Scalar>,
}

/// A published value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedText {
    /// The figure that it is drawn in; none: the first.
    pub(crate) figure: Option<Spanned<String>>,
    pub(crate) line: String,
    pub(crate) x: Scalar,
    pub(crate) y: f64,
}

impl Default for Quick {
    fn default() -> Self {
        // Six rounds are the fewest that can show who is ahead.
        Self { rounds: 6, seconds: 0.2 }
    }
}

/// Kinds of [`OwnSite`].
const OWN_SITES: [&str; 4] = ["fixed", "mix", "page", "linked"];

fn policy<'de, D: Deserializer<'de>, P: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Option<P>, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(D::Error::custom)
}

fn baton() -> String {
    "baton".to_owned()
}

fn usual_seconds() -> f64 {
    1.0
}

fn usual_warm_up() -> f64 {
    0.3
}

fn usual_figure() -> String {
    "figure".to_owned()
}

fn load() -> Spanned<String> {
    Spanned::new(0..0, "load".to_owned())
}

fn contender() -> Spanned<String> {
    Spanned::new(0..0, "contender".to_owned())
}
