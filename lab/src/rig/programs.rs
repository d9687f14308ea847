//! Where programs are, what they say, and which CPUs they may use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity};

/// Where programs are looked for: servers live in folders that are not in every user's path.
pub(crate) fn search_path() -> String {
    format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The program of this name: one that was built with the lab, or the first of the search path.
///
/// A name that ends in `*` is a family with versions in their names, of which the last counts.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    // Tests are one folder below the programs of their build.
    let built = own.iter().flat_map(|path| path.ancestors().skip(1).take(2)).map(Path::to_owned);
    let path = search_path();
    let mut folders = built.chain(path.split(':').map(PathBuf::from));
    match name.strip_suffix('*') {
        None => folders.map(|folder| folder.join(name)).find(|path| path.is_file()),
        Some(prefix) => folders.find_map(|folder| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries
                .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
                .map(|entry| entry.path())
                .max()
        }),
    }
}

/// What a program writes on its standard output, when it has ended well.
///
/// # Errors
/// If it is missing, or fails: with what it says about that.
pub(crate) fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.env("PATH", search_path()).stdin(Stdio::null()).output();
    let name = command.get_program().display();
    let output = output
        .with_context(|| format!("{name} is not installed: scripts/setup-bench installs what is needed"))?;
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said);
    ensure!(output.status.success(), "{name}: {}, {}", output.status, said.trim());
    Ok(output.stdout)
}

/// The same of a tool of the system, without the end of the line.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = output_of(Command::new(program).args(arguments));
    let output = output.with_context(|| format!("{program} {}", arguments.join(" ")))?;
    Ok(String::from_utf8_lossy(&output).trim().to_owned())
}

/// The CPUs that this process may use.
pub(crate) fn allowed_cpus() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}
