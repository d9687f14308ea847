//! etcd on a host, for nodes that join.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::rig::network::Host;

/// One member, whose data is gone with the next one. It is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Etcd {
    url: String,
    /// What it and those that ask it keep.
    folder: PathBuf,
    child: Child,
}

impl Etcd {
    /// Starts it, and waits until it answers.
    pub(super) fn start(host: &Host, folder: &Path) -> Result<Self> {
        let data = folder.join("etcd");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir_all(&data)?;
        let log = fs::File::create(folder.join("etcd.log"))?;
        let url = format!("http://{}", SocketAddr::from((host.v4(), PORT)));
        let entering = host.command("etcd");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(entering.get_program()).args(entering.get_args());
        let child = command
            .arg("--data-dir")
            .arg(data.join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("etcd")?;
        let etcd = Self { url, folder: data, child };
        let limit = Instant::now() + START_MAX;
        let answers = || {
            let mut curl = host.command("curl");
            let curl =
                curl.args(["-s", "--max-time", "1", "-o", "/dev/null", &format!("{}/version", etcd.url)]);
            curl.status().is_ok_and(|status| status.success())
        };
        while !answers() {
            ensure!(
                Instant::now() < limit,
                "etcd does not answer; see {}",
                folder.join("etcd.log").display()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(etcd)
    }

    /// The settings for a member of this name, which registers as this if anything. It knows of no earlier view.
    pub(super) fn settings(&self, name: &str, register: Option<&str>) -> Vec<String> {
        let register = register.map(|it| format!(", register={{{it}}}")).unwrap_or_default();
        vec![
            format!("cluster.etcd={{endpoints=[\"{}\"]{register}}}", self.url),
            format!("cluster.state_folder=\"{}\"", self.folder.join(name).display()),
        ]
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PORT: u16 = 2379;
const START_MAX: Duration = Duration::from_secs(20);
