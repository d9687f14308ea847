//! How often the bytes of an application's response are copied between processes and the kernel: counted, from outside.
//!
//! Server and application run unchanged under strace, which records how many bytes each call moved and on what kind
//! of descriptor. A call copies as many bytes as it returns; `sendfile` and `splice` copy none. The paper's ledger
//! (Yeung; three copies by FastCGI, one where the application answers for itself) is compared with sums of these.

mod ledger;
mod trace;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::applications::{AdRotation, Programs, ServerSetup};
use crate::comparison::Contender;
use crate::files;
use crate::load::{Load, LoadRequest, LoadSettings, RequestList};
use crate::markdown::row;
use crate::rig::{Application, Isolation, Machine, compile_ad_rotation, drop_in, own_folder};
pub use ledger::{Ledger, Watch};

/// What to count.
#[derive(Clone, Debug)]
pub struct CopiesSettings {
    /// Executables and libraries of this project.
    pub programs: Programs,
    /// Lengths of bodies.
    pub sizes: Vec<u64>,
    /// How many responses of each are counted.
    pub responses: u64,
    /// Where programs and notes are put.
    pub folder: PathBuf,
}

/// Counts, and returns the table as Markdown.
///
/// # Errors
/// If a program is missing, a server cannot be started, strace may not attach, or a response is wrong.
pub fn run(settings: &CopiesSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let (root, executable) = (folder.join("root"), compile_ad_rotation(&folder)?);
    let library = drop_in(&settings.programs.libfcgi, &folder)?;
    let mut text = String::new();
    row(
        &mut text,
        "response",
        &["by", "application → kernel", "kernel → server", "→ client", "copied", "copies", "by reference"],
    );
    row(&mut text, "---", &["---", "---:", "---:", "---:", "---:", "---:", "---:"]);
    for size in &settings.sizes {
        let named_file = format!("{size}.html");
        files::write_one(&root, &named_file, *size)?;
        let pool = AdRotation {
            programs: &settings.programs,
            executable: &executable,
            library: &library,
            processes: 1,
            root: &root,
            named_file: &named_file,
        };
        for way in ServerSetup::ALL {
            let contender = pool.start(way, &machine, &folder)?;
            let generated = format!("/app/ad?bytes={size}");
            line(&mut text, *size, &way.name(), &count(&contender, &generated, *size, settings)?, settings);
        }
        let contender = pool.start(ServerSetup::Baton("unix"), &machine, &folder)?;
        let ledger = count(&contender, "/app/ad?named", *size, settings)?;
        line(&mut text, *size, "baton, a named file", &ledger, settings);
    }
    Ok(text)
}

/// The ledger of so many sequential responses with this body.
fn count(contender: &Contender, path: &str, bytes: u64, settings: &CopiesSettings) -> Result<Ledger> {
    let ask = |requests| -> Result<()> {
        let settings = LoadSettings {
            address: contender.server.address,
            connections: 1,
            connection_per_request: false,
            idle_connections: 0,
            duration: PATIENCE,
            requests_max: Some(requests),
            requests_per_second: None,
            sleep: true,
            verify: false,
        };
        let request = LoadRequest::page(path, Some(bytes));
        let report = Load::connect(&settings, RequestList::new(settings.address, false, [request]))?.run()?;
        ensure!(
            report.requests == requests && report.failed() == 0,
            "{}: {}",
            contender.server.name,
            report.first_failure.unwrap_or_default()
        );
        Ok(())
    };
    // The first response costs more: transports are negotiated, named files looked up.
    ask(WARM_UP_RESPONSES)?;
    let notes = settings.folder.join("notes");
    let _ = fs::remove_dir_all(&notes);
    let application = contender.application.as_ref().map(Application::processes).unwrap_or_default();
    let watch = Watch::begin(&contender.server.processes(), &application, &notes)?;
    ask(settings.responses)?;
    watch.end()
}

fn line(text: &mut String, size: u64, name: &str, ledger: &Ledger, settings: &CopiesSettings) {
    let each = |bytes: u64| bytes / settings.responses;
    let mut copies = String::new();
    let _ = write!(copies, "{:.3}", each(ledger.copied()) as f64 / size as f64);
    let fields = [
        name.to_owned(),
        each(ledger.application_to_kernel).to_string(),
        each(ledger.kernel_to_server).to_string(),
        each(ledger.to_client).to_string(),
        each(ledger.copied()).to_string(),
        copies,
        each(ledger.by_reference).to_string(),
    ];
    row(text, &size.to_string(), &fields);
}

/// Under strace even the longest response takes a part of this.
const PATIENCE: Duration = Duration::from_secs(20);
const WARM_UP_RESPONSES: u64 = 3;
