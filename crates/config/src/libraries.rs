//! Where the libraries are that run in other people's programs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use baton_report::OperatorError;

use super::application::Application;
use super::config::Config;

/// Checks that the libraries for the configured applications are installed.
///
/// # Errors
/// One of them is not installed.
pub fn check(config: &Config) -> Result<(), OperatorError> {
    for launch in config.applications().filter_map(Application::launch) {
        for (is_wanted, key, name, variable) in [
            (launch.preload, "preload", PRELOAD, "BATON_PRELOAD"),
            (launch.dropin, "dropin", DROPIN, "BATON_DROPIN"),
        ] {
            if is_wanted && find(name, variable).is_none() {
                return Err(missing(name, variable).cause(format!(
                    "`{key} = true` of {} wants it; it is neither beside the executable nor in ../lib/baton",
                    launch.name()
                )));
            }
        }
    }
    Ok(())
}

/// Has the dynamic linker load the preload library.
///
/// # Errors
/// It is not installed.
pub fn add_preload(environment: &mut Vec<(OsString, OsString)>) -> Result<(), OperatorError> {
    let library = preload().ok_or_else(|| missing(PRELOAD, "BATON_PRELOAD"))?;
    put_first(environment, "LD_PRELOAD", library.as_os_str());
    Ok(())
}

/// Has the dynamic linker find our `libfcgi` before the system's.
///
/// # Errors
/// It is not installed.
pub fn add_dropin(environment: &mut Vec<(OsString, OsString)>) -> Result<(), OperatorError> {
    let library = find(DROPIN, "BATON_DROPIN").ok_or_else(|| missing(DROPIN, "BATON_DROPIN"))?;
    put_first(environment, "LD_LIBRARY_PATH", library.parent().unwrap_or(Path::new("/")).as_os_str());
    Ok(())
}

/// The preload library, if it is installed.
pub fn preload() -> Option<PathBuf> {
    find(PRELOAD, "BATON_PRELOAD")
}

const PRELOAD: &str = "libbaton_preload.so";
/// A folder of its own: another file in it could replace a library of the system.
const DROPIN: &str = "dropin/libfcgi.so.0";

/// Looks where the variable says, then beside the executable, then in the library folder beside that.
fn find(name: &str, variable: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return std::path::absolute(path).ok().filter(|path| path.is_file());
    }
    let executable = std::env::current_exe().ok()?;
    let folder = executable.parent()?;
    let candidates = [folder.join(name), folder.join("../lib/baton").join(name)];
    candidates.into_iter().find(|path| path.is_file())
}

fn missing(name: &str, variable: &str) -> OperatorError {
    OperatorError::new(format!("cannot find {name}"))
        .cause("it is neither beside the executable nor in ../lib/baton")
        .remedy(format!(
            "build and install it with `make install`, or say where it is: {variable}=/path/{name}"
        ))
}

/// Puts an entry in front of a list that is separated by colons.
fn put_first(environment: &mut Vec<(OsString, OsString)>, name: &str, entry: &OsStr) {
    match environment.iter_mut().rev().find(|(known, _)| known == name) {
        Some((_, list)) => {
            let mut whole = entry.to_owned();
            whole.push(":");
            whole.push(&*list);
            *list = whole;
        }
        None => environment.push((name.into(), entry.to_owned())),
    }
}
