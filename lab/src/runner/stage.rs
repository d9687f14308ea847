//! The stage of a load: the contenders that run for it, each with what stands behind it and the bounds around it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::cluster::{Cluster, ClusterPlace, Recipe};
use super::metered::NotHere;
use super::record::Outcome;
use super::site::Site;
use crate::experiment::{Contender, Experiment, Head, NamedLoad, NodesText, replace_words};
use crate::meters::{MeterName, Watched};
use crate::rig::network::Network;
use crate::rig::{Boxes, Certificate, Groups, Isolation, Machine, ServerBox, output_of, own_folder, run};
use crate::servers::{Ability, RunningServer, ServerKind, ServerPlace, ServerSettings, SettingTable};

/// The prepared machine, and the site.
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) folder: PathBuf,
    pub(super) root: PathBuf,
    pub(super) site: Site,
    pub(super) certificate: Certificate,
    origin: Option<RunningServer>,
    boxes: Option<Boxes>,
    /// They take hosts away on signals, where no boxes do.
    _groups: Option<Groups>,
    head: Head,
    pub(super) not_here: NotHere,
    /// Instead of the installed Baton.
    pub(super) baton: PathBuf,
    /// Settings of every Baton, beside those of the file.
    settings: SettingTable,
}

/// A contender that runs. It is stopped when this is dropped; [`Stage::stop`] takes its disk away, too.
pub(super) struct Contestant {
    // Dropped in this order: the server before what stands behind it.
    pub(super) server: RunningServer,
    pub(super) application: Option<RunningServer>,
    /// What stands behind it, if it is a cluster.
    pub(super) cluster: Option<Cluster>,
    /// Its box, if it has bounds.
    pub(super) server_box: Option<ServerBox>,
    /// What is measured of it beside its CPU time.
    pub(super) meters: Vec<MeterName>,
}

impl Stage {
    /// Prepares the machine and writes the site. Call it before there is another thread.
    ///
    /// # Errors
    /// If there are too few CPUs, the folder cannot be written, or root is needed, with the reason.
    pub(super) fn prepare(
        experiment: &Experiment,
        folder: &Path,
        site: Site,
        baton: &Path,
        settings: SettingTable,
    ) -> Result<Self> {
        let head = &experiment.head;
        let folder = own_folder(folder).with_context(|| folder.display().to_string())?;
        let has_hosts = experiment.has_hosts();
        if let Some(why) = Network::hindrance().filter(|_| has_hosts) {
            bail!("a cluster of hosts {why}");
        }
        let machine = Machine::prepare(has_hosts, head.cpus)?;
        if let Some(bytes) = head.packet_bytes {
            ensure!(
                machine.isolation == Isolation::Private,
                "packets of another size need a network of our own"
            );
            run("ip", &["link", "set", "lo", "mtu", &bytes.to_string()])?;
        }
        let root = folder.join("root");
        let set_bytes = site.bytes().max(SET_BYTES_MIN);
        let boxes = head.bounds.map(|bounds| Boxes::new(bounds, set_bytes, &folder, |root| site.write(root)));
        let boxes = boxes.transpose()?;
        let groups = if has_hosts && boxes.is_none() { Some(Groups::new()?) } else { None };
        if has_hosts || head.bounds.is_none_or(|bounds| bounds.disk_mb_s.is_none()) {
            site.write(&root)?;
        }
        let origin = head.origin.as_ref().map(|name| {
            let place = ServerPlace {
                cpus: machine.client_cpus.clone(),
                ..ServerPlace::new(&folder.join("origin"), &root)
            };
            let settings = ServerSettings::needing([Ability::Files]);
            ServerKind::load(name)?.start(&settings, &place).context("the origin")
        });
        Ok(Self {
            origin: origin.transpose()?,
            certificate: Certificate::make(&folder)?,
            machine,
            folder,
            root,
            site,
            boxes,
            _groups: groups,
            head: head.clone(),
            not_here: NotHere::default(),
            baton: baton.to_owned(),
            settings,
        })
    }

    /// The kind of a server; of a Baton, with the executable of this run.
    pub(super) fn kind(&self, name: &str) -> Result<ServerKind> {
        match name {
            "baton" => ServerKind::load(&format!("baton@{}", self.baton.display())),
            _ => ServerKind::load(name),
        }
    }

    /// Starts a contender for these loads, with a pool of its own if it has an application; else what becomes of its cells.
    pub(super) fn start(&self, contender: &Contender, loads: &[&NamedLoad]) -> Result<Contestant, Outcome> {
        let failed = |error: anyhow::Error| Outcome::of(Err(error));
        let kind = self.kind(&contender.what.server).map_err(failed)?;
        let mut asked: BTreeSet<Ability> = loads.iter().flat_map(|load| load.what.needs()).collect();
        asked.extend(self.site.needs());
        let cannot = |error: anyhow::Error| Outcome::Cannot(format!("{error:#}"));
        let recipe = |kind: ServerKind, needs: BTreeSet<Ability>, own: &SettingTable| {
            let mut set =
                if kind.name.starts_with("baton") { self.settings.clone() } else { SettingTable::new() };
            set.extend(own.clone());
            let settings = ServerSettings { needs, set: self.filled(set).map_err(cannot)? };
            if let Some(ability) = kind.cannot(&settings) {
                return Err(Outcome::Cannot(format!("{} has no {ability}", kind.title)));
            }
            kind.installed().map_err(cannot)?;
            Ok(Recipe { kind, settings })
        };
        let with_asked = |needs: &BTreeSet<Ability>| needs | &asked;
        // A front-end passes on what is asked.
        let is_front = contender.what.nodes.as_ref().is_some_and(|nodes| nodes.count > 0);
        let needs = if is_front { contender.what.needs.clone() } else { with_asked(&contender.what.needs) };
        let server = recipe(kind, needs, &contender.what.set)?;
        if let Some(text) = &contender.what.nodes {
            let kind = self.kind(&text.server).map_err(failed)?;
            let node = recipe(kind, with_asked(&text.needs), &text.set)?;
            return self.start_cluster(contender, server, node, text).map_err(failed);
        }
        let application = contender.what.application.as_ref().map(|text| {
            let kind = ServerKind::load(&text.server).map_err(failed)?;
            recipe(kind, BTreeSet::new(), &text.set)
        });
        self.start_server(contender, &server, application.transpose()?).map_err(failed)
    }

    fn start_server(
        &self,
        contender: &Contender,
        Recipe { kind, settings }: &Recipe,
        application: Option<Recipe>,
    ) -> Result<Contestant> {
        let own = self.own_folder(contender);
        let mut place = ServerPlace::new(&own, &self.root);
        place.cpus.clone_from(&self.machine.server_cpus);
        place.certificate = Some(&self.certificate);
        place.origins.extend(self.origin.as_ref().map(|origin| origin.address));
        let boxes = self.boxes.as_ref();
        let make = |boxes: &Boxes| boxes.make(&file_name(&contender.name), &own, contender.what.memory);
        let server_box = boxes.map(make).transpose()?;
        if let Some(server_box) = &server_box {
            server_box.groups().clone_into(&mut place.groups);
            place.root = server_box.root().unwrap_or(&self.root).to_owned();
        }
        let start = |Recipe { kind, settings }: Recipe| {
            let place = ServerPlace {
                cpus: self.machine.server_cpus.clone(),
                ..ServerPlace::new(&own.join("application"), &self.root)
            };
            kind.start(&settings, &place).context("its application")
        };
        let application = application.map(start).transpose()?;
        if let Some(application) = &application {
            place.fastcgi = Some(application.socket.clone());
            place.php = Some(application.socket.clone());
        }
        let server = kind.start(settings, &place)?;
        let meters = self.head.meters.iter().chain(&contender.what.meters).copied().collect();
        Ok(Contestant { server, application, cluster: None, server_box, meters })
    }

    fn start_cluster(
        &self,
        contender: &Contender,
        front: Recipe,
        node: Recipe,
        text: &NodesText,
    ) -> Result<Contestant> {
        let Machine { server_cpus, client_cpus, .. } = &self.machine;
        let place = ClusterPlace {
            folder: self.own_folder(contender),
            root: self.root.clone(),
            front_cpus: if self.head.one_cpu { client_cpus.clone() } else { server_cpus.clone() },
            node_cpus: client_cpus.clone(),
        };
        let (server, cluster) = Cluster::start(place, front, node, text, self.boxes.as_ref())?;
        let meters = self.head.meters.clone();
        Ok(Contestant { server, application: None, cluster: Some(cluster), server_box: None, meters })
    }

    fn own_folder(&self, contender: &Contender) -> PathBuf {
        self.folder.join(file_name(&contender.name))
    }

    /// Stops it, and takes its disk away.
    pub(super) fn stop(&self, contestant: Contestant) -> Result<()> {
        let Contestant { server, application, cluster, server_box, .. } = contestant;
        drop((server, application));
        let of_nodes = cluster.map(Cluster::stop).unwrap_or_default();
        let mut all = server_box.into_iter().chain(of_nodes);
        self.boxes.as_ref().map_or(Ok(()), |boxes| all.try_for_each(|one| boxes.remove(one)))
    }

    /// Settings with the folders of this run in the place of their words.
    fn filled(&self, mut set: SettingTable) -> Result<SettingTable> {
        for value in set.values_mut() {
            self.fill(value)?;
        }
        Ok(set)
    }

    /// The key that members of a cluster share, which is made for the first of them.
    fn cluster_key(&self) -> Result<PathBuf> {
        let file = self.folder.join("cluster.pem");
        if !file.exists() {
            output_of(Command::new(&self.baton).args(["cluster", "key"]).arg(&file))?;
        }
        Ok(file)
    }

    /// The key of servers that lend each other documents.
    fn documents_key(&self) -> Result<PathBuf> {
        let file = self.folder.join("documents.key");
        fs::write(&file, "5eed".repeat(16))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        Ok(file)
    }

    fn fill(&self, value: &mut toml::Value) -> Result<()> {
        match value {
            toml::Value::String(text) => {
                // Documents show why a contender is missing, and know no folder of a machine.
                let needed = NEEDED_FILES
                    .iter()
                    .find_map(|(folder, remedy)| Some((text.strip_prefix(folder)?.to_owned(), remedy)));
                *text = replace_words(text, |word| {
                    let build = self.baton.canonicalize()?.parent().map(Path::to_owned).unwrap_or_default();
                    let path = match word {
                        "root" => self.root.clone(),
                        "folder" => self.folder.clone(),
                        "build" => build,
                        "tools" => build.with_file_name("tools"),
                        "cluster_key" => self.cluster_key()?,
                        "documents_key" => self.documents_key()?,
                        "drop_in" => drop_in(&build.join("libfcgi.so"), &self.folder)?,
                        _ => return Ok::<_, anyhow::Error>(None),
                    };
                    Ok(Some(path.display().to_string()))
                })?;
                if let Some((name, remedy)) = needed {
                    ensure!(Path::new(text).exists(), "{name} is not here: {remedy}");
                }
                Ok(())
            }
            toml::Value::Array(items) => items.iter_mut().try_for_each(|item| self.fill(item)),
            toml::Value::Table(table) => table.iter_mut().try_for_each(|(_, item)| self.fill(item)),
            _ => Ok(()),
        }
    }
}

/// The name of a contender in the names of files.
fn file_name(name: &str) -> String {
    name.replace([' ', '/', ','], "-")
}

impl Contestant {
    /// Its processes, those of its application and of all front-ends included.
    pub(super) fn watched(&self) -> Watched {
        let more = self.cluster.iter().flat_map(|cluster| &cluster.more_fronts);
        let servers = std::iter::once(&self.server).chain(more).chain(&self.application);
        Watched {
            processes: servers.flat_map(RunningServer::processes).collect(),
            ..Watched::of(&self.server)
        }
    }

    /// Runs the work where clients are.
    pub(super) fn on_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.cluster {
            Some(cluster) => cluster.hosts.client.run(work),
            None => work(),
        }
    }

    /// Whether it has a disk of its own, and little memory for it.
    pub(super) fn has_disk(&self) -> bool {
        self.server_box.as_ref().is_some_and(|server_box| server_box.root().is_some())
    }

    /// How often the kernel killed a process in its box for want of memory.
    pub(super) fn memory_kills(&self) -> u64 {
        self.server_box.as_ref().map_or(0, ServerBox::memory_kills)
    }

    /// Does something with all of its disk and CPU, although it is in a box.
    pub(super) fn unbounded(&mut self, act: impl FnOnce(&mut Self)) -> Result<()> {
        self.server_box.as_ref().map_or(Ok(()), ServerBox::lift)?;
        act(self);
        self.server_box.as_ref().map_or(Ok(()), ServerBox::bind)
    }

    /// The kernel takes pages from idle processes, but not from those that are stopped between their turns.
    pub(super) fn rest(&self) {
        if self.has_disk() {
            self.server.pause();
        }
    }

    pub(super) fn wake(&self) {
        if self.has_disk() {
            self.server.resume();
        }
    }
}

/// Installs a library so that programs find it first as `libfcgi.so.0`.
fn drop_in(library: &Path, folder: &Path) -> Result<PathBuf> {
    let library = library.canonicalize().map_err(|_| anyhow!("libfcgi.so is not built: make adapters"))?;
    let place = folder.join("drop-in");
    fs::create_dir_all(&place)?;
    let link = place.join("libfcgi.so.0");
    let _ = fs::remove_file(&link);
    symlink(library, link)?;
    Ok(place)
}

/// Folders whose files make contenders possible, and what puts files there.
const NEEDED_FILES: [(&str, &str); 2] = [("{build}/", "make adapters"), ("{tools}/", "scripts/setup-bench")];

/// A share of a smaller set would leave a server no memory of its own.
const SET_BYTES_MIN: u64 = 256 << 20;
