//! Experiments as files: what is served, the load, who competes, what is drawn, and what is claimed.
//!
//! A file is 20 to 40 lines of TOML, of closed lists and without an expression language ([`contents`], [`load_text`],
//! [`claim`]). Tables of `[[load]]` and `[[contender]]` may have a [`sweep`]. The cells of an experiment are all
//! combinations of a load and a contender. Whatever is not known is a [`Mistake`] with its line.

mod claim;
mod contents;
mod load_text;
mod mistake;
mod procedure_text;
mod scalar;
mod sweep;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::getuid;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::meters::MeterName;
use crate::rig::{allowed_cpus, names_in};

pub(crate) use claim::{Aggregate, AggregateKind, Statement};
pub(crate) use contents::{
    ContenderText, FigureText, Head, NodesText, OwnSite, SimulatedDocuments, SiteText,
};
pub(crate) use load_text::{
    Ask, Beside, ClosedText, FaultName, FaultText, H2loadText, LoadText, PacedText, ProtocolName, SEQUENCES,
    SlowReadersText, ability_of, accepts_codings,
};
pub use mistake::Mistake;
pub(crate) use mistake::likely;
pub(crate) use procedure_text::ProcedureText;
pub(crate) use scalar::Scalar;
pub(crate) use sweep::{Parameters, replace_words};

/// An experiment, read and expanded.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Of its file, without the ending.
    pub name: String,
    /// What [`find`](Self::find) finds it by.
    pub origin: String,
    pub(crate) text: String,
    pub(crate) head: Head,
    pub(crate) loads: Vec<NamedLoad>,
    pub(crate) contenders: Vec<Contender>,
    /// In the order of the file.
    pub(crate) claims: Vec<Statement>,
}

/// The name of the folder of an executable, by which figures tell builds apart.
fn folder_of(build: &Path) -> String {
    build.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// One of the tables that a table with a sweep stands for.
#[derive(Clone, Debug)]
pub(crate) struct Variant<T> {
    pub(crate) name: String,
    pub(crate) parameters: Parameters,
    pub(crate) what: T,
}

/// A load with its name.
pub(crate) type NamedLoad = Variant<LoadText>;

/// Who competes, with its name.
pub(crate) type Contender = Variant<ContenderText>;

impl Experiment {
    /// Those that come with the lab, by name.
    ///
    /// # Errors
    /// The first mistake in a file.
    pub fn all() -> Result<Vec<Self>> {
        names_in(FOLDER)?.iter().map(|name| Self::find(name)).collect()
    }

    /// One of those, or that of a file.
    ///
    /// # Errors
    /// If there is none, with the name that may have been meant, or the file has a mistake.
    pub fn find(name: &str) -> Result<Self> {
        if name.ends_with(".toml") {
            let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
            return Ok(Self { origin: name.to_owned(), ..Self::read(&stem, name)? });
        }
        let names = names_in(FOLDER)?;
        if !names.iter().any(|known| known == name) {
            let meant = likely(name, names.iter().map(String::as_str));
            let meant = meant.map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
            bail!("there is no experiment `{name}`{meant} (`baton-lab list` has all)");
        }
        Self::read(name, &format!("{FOLDER}/{name}.toml"))
    }

    fn read(name: &str, file: &str) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.to_owned())?;
        Ok(Self::parse(name, file, &text)?)
    }

    /// Reads and expands the text of a file.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Self, Mistake> {
        let at = |span: Range<usize>, what: String| Mistake::at(file, text, span, what);
        let mut root = DeTable::parse(text).map_err(|error| Mistake::of_parser(file, text, &error))?;
        let loads = variants("load", root.get_mut(), file, text)?;
        let contenders = variants("contender", root.get_mut(), file, text)?;
        let head: Head = typed(root, file, text)?;
        let claims =
            head.claim.iter().map(|claim| claim.get_ref().statement().map_err(|what| at(claim.span(), what)));
        let claims = claims.collect::<Result<_, _>>()?;
        let experiment = Self {
            name: name.to_owned(),
            origin: name.to_owned(),
            text: text.to_owned(),
            head,
            loads,
            contenders,
            claims,
        };
        experiment.check().map_err(|(span, what)| at(span, what))?;
        Ok(experiment)
    }

    /// The cells: loads with the contenders that get them.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&NamedLoad, &Contender)> {
        self.loads.iter().flat_map(|load| self.contenders_of(load).map(move |contender| (load, contender)))
    }

    /// The loads that the same servers get one after the other: all if servers are kept or have filled their boxes at
    /// length, else each by itself.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &[NamedLoad]> {
        let keeps = self.head.keep_servers || self.head.bounds.is_some();
        self.loads.chunks(if keeps { self.loads.len().max(1) } else { 1 })
    }

    /// The contenders that get this load.
    pub(crate) fn contenders_of(&self, load: &NamedLoad) -> impl Iterator<Item = &Contender> {
        let gets = |contender: &&Contender| {
            let only = &contender.what.only;
            only.is_empty() || only.iter().any(|name| *name.get_ref() == load.name)
        };
        self.contenders.iter().filter(gets)
    }

    /// What tells about it in a list: name, title, rows, what it needs.
    pub fn line(&self) -> String {
        let Head { title, rows, .. } = &self.head;
        let rows = if rows.is_empty() { String::new() } else { format!(" ({})", rows.join(", ")) };
        let root = if self.needs_root().is_some() { ", needs root" } else { "" };
        format!("{:<16} {title}{rows}{root}", self.name)
    }

    /// Rows of `docs/experiments.md`.
    pub fn rows(&self) -> &[String] {
        &self.head.rows
    }

    /// Whether it is a part of the page that compares Baton with other servers.
    pub fn compares_peers(&self) -> bool {
        self.head.peers.is_some()
    }

    /// With more contenders: each that is a Baton with each of these executables, named by their folders.
    pub(crate) fn with_builds(mut self, builds: &[PathBuf]) -> Self {
        let ours = |contender: &&Contender| contender.what.server == "baton";
        let ours: Vec<Contender> = self.contenders.iter().filter(ours).cloned().collect();
        for build in builds {
            let folder = folder_of(build);
            self.contenders.extend(ours.iter().cloned().map(|mut contender| {
                contender.name = format!("{} of {folder}", contender.name);
                contender.parameters.insert("contender".to_owned(), Scalar(contender.name.clone()));
                contender.what.server = format!("baton@{}", build.display());
                contender
            }));
        }
        self
    }

    /// Enough to see that it works: two nodes and two front-ends in a cluster at most, and no samples, whose reports take seconds.
    pub(crate) fn thinned(mut self) -> Self {
        let is_brief = |meter: &MeterName| *meter != MeterName::Copies;
        self.head.meters.retain(is_brief);
        for contender in &mut self.contenders {
            contender.what.meters.retain(is_brief);
            if let Some(nodes) = &mut contender.what.nodes {
                nodes.count = nodes.count.min(2);
                nodes.front_ends = nodes.front_ends.min(2);
            }
        }
        self
    }

    /// The name that two builds would share.
    pub(crate) fn shared_name(builds: &[PathBuf]) -> Option<String> {
        let names: Vec<String> = builds.iter().map(|build| folder_of(build)).collect();
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name.clone())
    }

    /// Whether contenders are clusters of hosts.
    pub(crate) fn has_hosts(&self) -> bool {
        self.contenders.iter().any(|contender| contender.what.nodes.is_some())
    }

    /// Why it cannot be run here as this user.
    pub(crate) fn hindrance(&self) -> Option<&'static str> {
        let has_cpus = allowed_cpus().is_ok_and(|cpus| cpus.len() >= self.head.cpus);
        match self.needs_root() {
            Some(why) if !getuid().is_root() => Some(why),
            _ => (!has_cpus).then_some("its server needs more CPUs than this machine has"),
        }
    }

    /// Why it needs root, if it does.
    fn needs_root(&self) -> Option<&'static str> {
        let Head { bounds, packet_bytes, procedure, .. } = &self.head;
        let looks_inside =
            |load: &NamedLoad| matches!(load.what, LoadText::Stepped { .. } | LoadText::Traced { .. });
        let makes_hosts = self.has_hosts() || procedure.as_ref().is_some_and(ProcedureText::needs_root);
        let reasons = [
            (
                bounds.is_some(),
                "only root may bound a server's memory and disk: control groups, a loop device and mounts",
            ),
            (makes_hosts, "only root may make hosts in network namespaces, control groups and mounts"),
            (self.loads.iter().any(looks_inside), "only root may look into the processes of a server"),
            (packet_bytes.is_some(), "only root may give the loopback device other packets"),
        ];
        reasons.into_iter().find_map(|(is_so, why)| is_so.then_some(why))
    }

    /// The figure of this name, or the first.
    pub(crate) fn figure(&self, name: Option<&Spanned<String>>) -> Option<&FigureText> {
        match name {
            Some(name) => self.head.figure.iter().find(|figure| figure.name == *name.get_ref()),
            None => self.head.figure.first(),
        }
    }

    /// What no type says: that names mean something.
    fn check(&self) -> Result<(), sweep::Complaint> {
        let Head { figure: figures, published, claim: claims, procedure, minutes, .. } = &self.head;
        let ensure = |is_so: bool, otherwise: &dyn Fn() -> String| -> Result<(), sweep::Complaint> {
            if is_so { Ok(()) } else { Err((0..0, otherwise())) }
        };
        if procedure.is_some() {
            let is_alone = self.loads.is_empty() && self.contenders.is_empty();
            ensure(is_alone, &|| "a procedure has neither loads nor contenders".into())?;
            return ensure(minutes.is_some(), &|| {
                "`minutes = [10, 3]` is missing: how long the procedure takes, in full and in the short form"
                    .into()
            });
        }
        ensure(self.cells().next().is_some(), &|| "an experiment needs a load and a contender".into())?;
        for (load, contender) in self.cells() {
            let is_cluster = contender.what.nodes.is_some();
            let (fits, what) = match load.what {
                LoadText::Closed(_) | LoadText::Sessions(_) => (true, ""),
                LoadText::Fault(_) | LoadText::Visits { .. } => (is_cluster, "has no `nodes`"),
                _ => (!is_cluster, "is a cluster, which gets `closed`, `sessions`, `fault` and `visits`"),
            };
            let (load, contender) = (&load.name, &contender.name);
            ensure(fits, &|| format!("`{contender}` cannot get the load `{load}`: it {what}"))?;
            ensure(is_cluster == self.has_hosts(), &|| {
                format!("`{contender}` has no `nodes`, and others have: `nodes = {{ count = 0 }}`")
            })?;
        }
        let loads: Vec<String> = self.loads.iter().map(|load| load.name.clone()).collect();
        for only in self.contenders.iter().flat_map(|contender| &contender.what.only) {
            known("load", only.get_ref(), only.span(), &loads)?;
        }
        let parameters = self.parameters();
        for figure in figures {
            for name in [&figure.x, &figure.lines] {
                known("parameter", name.get_ref(), name.span(), &parameters)?;
            }
            if let Some(reference) = &figure.reference {
                known("line", reference.get_ref(), reference.span(), &self.lines(figure))?;
            }
        }
        let names: Vec<String> = figures.iter().map(|figure| figure.name.clone()).collect();
        let named = published.iter().map(|value| &value.figure);
        for name in named.chain(claims.iter().map(|claim| &claim.get_ref().figure)).flatten() {
            known("figure", name.get_ref(), name.span(), &names)?;
        }
        for (claim, statement) in claims.iter().zip(&self.claims) {
            let figure = self.figure(claim.get_ref().figure.as_ref());
            let figure = figure.ok_or((claim.span(), "a claim needs a figure".to_owned()))?;
            let (lines, places) = (self.lines(figure), self.values(figure.x.get_ref(), figure));
            statement.lines().into_iter().try_for_each(|line| known("line", line, claim.span(), &lines))?;
            statement.places().try_for_each(|place| known("place", &place.0, claim.span(), &places))?;
        }
        Ok(())
    }

    /// Names of all parameters.
    fn parameters(&self) -> Vec<String> {
        let of_loads = self.loads.iter().flat_map(|load| load.parameters.keys());
        let of_contenders = self.contenders.iter().flat_map(|contender| contender.parameters.keys());
        let all: BTreeSet<&String> = of_loads.chain(of_contenders).collect();
        all.into_iter().cloned().collect()
    }

    /// The lines of a figure, in the order of the file.
    pub(crate) fn lines(&self, figure: &FigureText) -> Vec<String> {
        self.values(figure.lines.get_ref(), figure)
    }

    /// The values of a parameter in the cells of a figure, in the order of the file.
    pub(crate) fn values(&self, parameter: &str, figure: &FigureText) -> Vec<String> {
        let cell = |(load, contender): (&'_ NamedLoad, &'_ Contender)| {
            let mut all = load.parameters.clone();
            contender.parameters.iter().for_each(|(name, value)| {
                all.entry(name.clone()).or_insert_with(|| value.clone());
            });
            all
        };
        values(self.cells().map(cell), parameter, figure)
    }
}

/// The values of a parameter among the parameters of cells, in their order: of those cells that a figure shows.
pub(crate) fn values(
    cells: impl Iterator<Item = impl Borrow<Parameters>>,
    parameter: &str,
    figure: &FigureText,
) -> Vec<String> {
    let mut found = Vec::new();
    for cell in cells {
        let cell: &Parameters = cell.borrow();
        let is_shown = figure.only.iter().all(|(name, wanted)| cell.get(name) == Some(wanted));
        let value = cell.get(parameter).filter(|value| is_shown && !found.contains(&value.0));
        found.extend(value.map(|value| value.0.clone()));
    }
    found
}

/// A name has to be one of these.
fn known(what: &str, name: &str, span: Range<usize>, all: &[String]) -> Result<(), sweep::Complaint> {
    if all.iter().any(|known| known == name) {
        return Ok(());
    }
    let help = match likely(name, all.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", all.join(", ")),
    };
    Err((span, format!("there is no {what} `{name}`: {help}")))
}

/// The variants of an array of tables, which is taken out of the file. Each has a name, which is a parameter, too: `load` or `contender`.
fn variants<T: DeserializeOwned>(
    kind: &str,
    root: &mut DeTable<'_>,
    file: &str,
    text: &str,
) -> Result<Vec<Variant<T>>, Mistake> {
    let at = |span: Range<usize>, what: String| Mistake::at(file, text, span, what);
    let Some(array) = root.remove(kind) else { return Ok(Vec::new()) };
    let span = array.span();
    let DeValue::Array(items) = array.into_inner() else {
        return Err(at(span, format!("this is a list of tables: [[{kind}]]")));
    };
    let mut found: Vec<Variant<T>> = Vec::new();
    for item in items {
        let span = item.span();
        let DeValue::Table(table) = item.into_inner() else {
            return Err(at(span, "this is a table".to_owned()));
        };
        for (mut parameters, mut table) in
            sweep::expand(Spanned::new(span.clone(), table)).map_err(|(span, what)| at(span, what))?
        {
            let name = table.get_mut().remove("name");
            let name = name.and_then(|name| Scalar::of(name.get_ref()));
            let name = name.ok_or_else(|| at(span.clone(), "`name` is missing".to_owned()))?;
            if found.iter().any(|other| other.name == name.0) {
                return Err(at(span, format!("there are two of the name `{name}`")));
            }
            parameters.insert(kind.to_owned(), name.clone());
            found.push(Variant { name: name.0, parameters, what: typed(table, file, text)? });
        }
    }
    Ok(found)
}

fn typed<T: DeserializeOwned>(table: Spanned<DeTable<'_>>, file: &str, text: &str) -> Result<T, Mistake> {
    T::deserialize(toml::Deserializer::from(table)).map_err(|error| Mistake::of_parser(file, text, &error))
}

/// In the checkout that the lab was built from.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_expanded() {
        for experiment in Experiment::all().unwrap() {
            let cells = experiment.cells().count();
            assert!(cells > 0 || experiment.head.procedure.is_some(), "{}", experiment.name);
            assert!(!experiment.head.figure.is_empty(), "{} shows nothing", experiment.name);
        }
    }

    const SMALL: &str = "\
title = 'small'
[[load]]
name = '{kb} KB'
sweep.kb = [1, 16]
kind = 'closed'
ask = '/{kb}k.html'
[[contender]]
name = '{server}'
sweep.server = ['nginx', 'baton']
server = '{server}'
[[figure]]
x = 'kb'
y = 'rate'
reference = 'nginx'
[[claim]]
text = 'Baton is faster'
order = ['baton', 'nginx']
";

    fn mistake(from: &str, to: &str) -> String {
        let text = SMALL.replace(from, to);
        assert_ne!(text, SMALL, "{from}");
        Experiment::parse("small", "small.toml", &text).unwrap_err().to_string()
    }

    #[test]
    fn loads_and_contenders_are_combined() {
        let small = Experiment::parse("small", "small.toml", SMALL).unwrap();
        let names: Vec<_> =
            small.cells().map(|(load, contender)| format!("{} {}", load.name, contender.name)).collect();
        assert_eq!(names, ["1 KB nginx", "1 KB baton", "16 KB nginx", "16 KB baton"]);
        let LoadText::Closed(load) = &small.loads[1].what else { panic!("another kind") };
        assert_eq!(load.ask, Ask::One("/16k.html".into()));
        assert_eq!(small.loads[1].parameters["kb"].number(), Some(16.0));
    }

    #[test]
    fn a_contender_gets_only_what_it_wants() {
        let text = SMALL.replace("server = '{server}'\n", "server = '{server}'\nonly = ['1 KB']\n");
        let small = Experiment::parse("small", "small.toml", &text).unwrap();
        assert_eq!(small.cells().count(), 2);
    }

    #[test]
    fn each_mistake_has_its_line_and_a_proposal() {
        let cases = [
            (("title", "titel"), "small.toml:1: `titel` is not known: did you mean `title`?"),
            (("ask =", "asks ="), "small.toml:6: `asks` is not known: did you mean `ask`?"),
            (("'closed'", "'closet'"), "small.toml:5: `closet` is not known: did you mean `closed`?"),
            (
                ("/{kb}k", "/{kbs}k"),
                "small.toml:6: `{kbs}` is no parameter of this table: did you mean `{kb}`?",
            ),
            (("y = 'rate'", "y = 'rat'"), "small.toml:13: `rat` is not known: did you mean `rate`?"),
            (("x = 'kb'", "x = 'kbs'"), "small.toml:12: there is no parameter `kbs`: did you mean `kb`?"),
            (
                ("reference = 'nginx'", "reference = 'ngin'"),
                "small.toml:14: there is no line `ngin`: did you mean `nginx`?",
            ),
            (
                ("order = ['baton'", "order = ['batom'"),
                "small.toml:15: there is no line `batom`: did you mean `baton`?",
            ),
            (
                ("order = ['baton', 'nginx']", "ratio = ['at(baton, 1)', 'best(17)']\nwithin = [1, 2]"),
                "small.toml:15: there is no place `17`: there are 1, 16",
            ),
            (("order", "equal"), "small.toml:15: `tolerance = 0.05` is missing"),
            (("order = ['baton', 'nginx']", ""), "small.toml:15: a claim has one of"),
            (
                ("order = ['baton', 'nginx']", "ratio = ['peek(baton)', 'peak(nginx)']\nwithin = [1, 2]"),
                "small.toml:17: `peek` is not known: did you mean `peak`?",
            ),
            (
                ("'nginx', 'baton']\n", "'nginx', 'nginx']\n"),
                "small.toml:7: there are two of the name `nginx`",
            ),
        ];
        for ((from, to), expected) in cases {
            let found = mistake(from, to);
            assert!(found.starts_with(expected), "{from} -> {to}: {found}");
        }
    }

    #[test]
    fn a_cluster_gets_its_own_loads_and_competes_with_clusters() {
        let nodes = ("server = '{server}'\n", "server = '{server}'\nnodes = { count = 2 }\n");
        let all = SMALL.replace(nodes.0, nodes.1);
        assert!(Experiment::parse("small", "small.toml", &all).unwrap().has_hosts());
        let why = |text: &str| Experiment::parse("small", "small.toml", text).unwrap_err().to_string();
        let idle = all.replace("kind = 'closed'\nask = '/{kb}k.html'", "kind = 'idle-tls'\nconnections = 9");
        assert!(why(&idle).contains("`nginx` cannot get the load `1 KB`: it is a cluster"), "{}", why(&idle));
        let visits = SMALL.replace("kind = 'closed'\nask = '/{kb}k.html'", "kind = 'visits'\nvisitors = 9");
        assert!(why(&visits).contains("it has no `nodes`"), "{}", why(&visits));
        let mixed = all + "[[contender]]\nname = 'alone'\nserver = 'baton'\n";
        assert!(why(&mixed).contains("`alone` has no `nodes`, and others have"), "{}", why(&mixed));
    }

    #[test]
    fn builds_have_names_of_their_own() {
        let builds = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(Experiment::shared_name(&builds(&["a/baton", "b/baton"])), None);
        assert_eq!(Experiment::shared_name(&builds(&["a/one", "b/two", "a/three"])), Some("a".into()));
    }

    #[test]
    fn an_unknown_experiment_has_a_proposal() {
        let why = Experiment::find("file").unwrap_err().to_string();
        assert!(why.contains("did you mean `files`?"), "{why}");
    }
}
