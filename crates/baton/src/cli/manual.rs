//! `baton man` and `baton completions`: made from the definitions of the command line and of the settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_config::reference_roff;
use clap::{Args, Command, ValueHint};
use clap_complete::Shell;

use super::output::{Failure, print};

/// Print the completions of a shell
#[derive(Debug, Args)]
pub(super) struct Completions {
    shell: Shell,
}

impl Completions {
    /// Prints the script for our command line.
    pub(super) fn run(&self, mut ours: Command) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut ours, "baton", &mut script);
        print(&String::from_utf8(script)?)
    }
}

/// Print a manual page, or write all of them to a folder
#[derive(Debug, Args)]
pub(super) struct Man {
    /// Page: `baton`, `baton-serve`, ..., or `baton.toml`
    #[arg(default_value = "baton")]
    page: String,

    /// Folder that gets all pages, named for their sections: baton.8, baton.toml.5, ...
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "page")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints one page of our command line's, or writes all.
    pub(super) fn run(&self, ours: Command) -> Result<ExitCode, Failure> {
        let pages = pages(ours)?;
        if let Some(dir) = &self.dir {
            return write(&pages, dir);
        }
        match pages.iter().find(|page| page.name == self.page) {
            Some(page) => print(&page.text),
            None => {
                let names: Vec<_> = pages.iter().map(|page| page.name.as_str()).collect();
                Err(Failure(format!("error: no page {:?}; there are {}", self.page, names.join(", "))))
            }
        }
    }
}

struct Page {
    name: String,
    section: &'static str,
    text: String,
}

/// What stands at the foot of each page.
const SOURCE: &str = concat!("baton ", env!("CARGO_PKG_VERSION"));

fn pages(mut command: Command) -> Result<Vec<Page>, Failure> {
    command.build();
    let mut pages = vec![Page { name: "baton.toml".into(), section: "5", text: reference_roff() }];
    add_pages(command, &mut pages)?;
    Ok(pages)
}

/// A page for a command, and one for each command below it, to which it refers.
fn add_pages(command: Command, pages: &mut Vec<Page>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or("baton").to_owned();
    let below: Vec<_> =
        command.get_subcommands().filter(|below| below.get_name() != "help").cloned().collect();
    // `help` is no page to refer to.
    let command = command.disable_help_subcommand(true).mut_subcommands(|below| match below.get_name() {
        "help" => below.hide(true),
        _ => below,
    });
    let mut text = Vec::new();
    clap_mangen::Man::new(command).section("8").source(SOURCE).manual("Baton").render(&mut text)?;
    // What follows the options are examples, whose lines stay as they are.
    let text = String::from_utf8(text)?.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n");
    pages.push(Page { name, section: "8", text });
    below.into_iter().try_for_each(|below| add_pages(below, pages))
}

fn write(pages: &[Page], dir: &Path) -> Result<ExitCode, Failure> {
    let at = |path: &Path, error| Failure(format!("error: cannot write {}: {error}", path.display()));
    fs::create_dir_all(dir).map_err(|error| at(dir, error))?;
    for page in pages {
        let path = dir.join(format!("{}.{}", page.name, page.section));
        fs::write(&path, &page.text).map_err(|error| at(&path, error))?;
    }
    Ok(ExitCode::SUCCESS)
}
