//! Why no file answers a path: the first obstacle on the way from the root to it.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use baton_config::{Files, RouteSettings};
use baton_http::decode_path;

use super::representation::below_root;

/// What keeps a path from being answered with a file; nothing if the server found one that is not known here.
pub(super) fn why(files: &Files, route: Option<&RouteSettings>, path: &str, status: &str) -> Option<String> {
    let root = files.root.as_ref()?;
    let mut decoded = Vec::new();
    if let Err(refusal) = decode_path(path.split('?').next().unwrap_or(path).as_bytes(), &mut decoded) {
        return Some(format!("none: {refusal}"));
    }
    let relative = below_root(route, &decoded);
    let names_folder = relative.is_empty() || relative.ends_with(b"/");
    let mut at = root.clone();
    let mut names = relative.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        if name.starts_with(b".") && !files.hidden && name != b".well-known" {
            let name = shown(name);
            return Some(format!(
                "not sent: {name} begins with a dot, and `hidden = true` alone serves such names"
            ));
        }
        let folder = at.clone();
        at.push(OsStr::from_bytes(name));
        match at.metadata() {
            Ok(found) if !found.is_dir() && names.peek().is_some() => {
                return Some(format!("none: {} is a file, and the path goes on behind it", at.display()));
            }
            Ok(_) => {}
            Err(error) => return Some(not_there(&at, &folder, &error)),
        }
    }
    what_is_there(files, &at, names_folder, status)
}

/// Why a path that leads somewhere is not answered with a file.
fn what_is_there(files: &Files, at: &Path, names_folder: bool, status: &str) -> Option<String> {
    let found = at.metadata().ok()?;
    if found.is_dir() {
        if status == "301" {
            return Some("none: a folder, whose path ends in `/`".into());
        }
        if status == "200" && files.browse {
            return Some("none: a listing is made for each request".into());
        }
        let index = files.index.join(", ");
        let index =
            if index.is_empty() { "no index is configured".into() } else { format!("it has no {index}") };
        return Some(format!(
            "none: {} is a folder; {index}, and `browse = true` would list it",
            at.display()
        ));
    }
    if names_folder {
        return Some(format!("none: {} is a file, and the path ends in `/`", at.display()));
    }
    if let Some(kind) = special(&found) {
        return Some(format!("not sent: {} is {kind}", at.display()));
    }
    let error = std::fs::File::open(at).err()?;
    Some(format!("not sent: {} cannot be read: {error}", at.display()))
}

/// The name of a kind of file that has no content of its own.
fn special(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    Some(match () {
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => return None,
    })
}

fn not_there(at: &Path, folder: &Path, error: &io::Error) -> String {
    let (is_link, at, folder) = (at.is_symlink(), at.display(), folder.display());
    match error.kind() {
        io::ErrorKind::NotFound if is_link => format!("none: {at} is a link that leads nowhere"),
        io::ErrorKind::NotFound => format!("none: there is no {at}"),
        io::ErrorKind::PermissionDenied => {
            format!("not known: {folder} cannot be entered by the user who asks: {error}")
        }
        _ => format!("none: {at}: {error}"),
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}
