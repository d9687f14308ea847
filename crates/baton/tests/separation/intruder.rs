//! The intruder: a script that tries each act, and applications that run it, one for each protocol.

use std::fs;
use std::path::PathBuf;

use crate::common::folder::{Folder, install_program};
use crate::common::leave_out;
use crate::common::server::BATON;

/// An application by each protocol, at a path of its own.
pub(crate) const PATHS: [&str; 4] = ["/intruder.cgi", "/fastcgi", "/scgi", "/php-fpm"];

/// Installs the applications. Returns their routes; `user` is a setting of each.
pub(crate) fn install(folder: &Folder, user: &str) -> String {
    let base = folder.base().display().to_string();
    let script = INTRUDER
        .replace("{key}", &format!("{base}/localhost.key"))
        .replace("{control}", &format!("{base}/control"))
        .replace("{logs}", &format!("{base}/logs"));
    install_program(&folder.base().join("intruder"), &script);
    install_program(&folder.path("intruder.cgi"), &script);
    for (name, text) in [("scgi.py", SCGI), ("intruder.php", PHP)] {
        fs::write(folder.base().join(name), text.replace("{base}", &base)).expect("a file");
    }
    let fastcgi = program("fcgiwrap").map_or(String::new(), |program| {
        format!(
            "[[site.route]]\npath = '/fastcgi'\nfastcgi = {{ command = ['{}'], \
             params = {{ SCRIPT_FILENAME = '{base}/intruder' }}, {user} }}\n",
            program.display()
        )
    });
    let php_fpm = program("php-fpm").map_or(String::new(), |program| {
        format!(
            "[[site.route]]\npath = '/php-fpm'\nfastcgi = {{ command = ['{BATON}', 'app', 'php-fpm', '{}'], \
             params = {{ SCRIPT_FILENAME = '{base}/intruder.php' }}, stop_signal = 'quit', {user} }}\n",
            program.display()
        )
    });
    format!(
        "[[site.route]]\npath = '/'\ncgi = {{ scripts = ['.cgi'], {user} }}\n\
         [[site.route]]\npath = '/scgi'\nscgi = {{ command = ['/usr/bin/python3', '{base}/scgi.py'], {user} }}\n\
         {fastcgi}{php_fpm}"
    )
}

/// The applications that can run here.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    let needed = [("/fastcgi", "fcgiwrap"), ("/php-fpm", "php-fpm")];
    let missing = needed.into_iter().filter(|(_, name)| program(name).is_none());
    let missing: Vec<_> = missing
        .inspect(|(path, name)| {
            leave_out(
                &format!("what {path} can do"),
                &format!("{name} is missing: scripts/setup-tests installs it"),
            );
        })
        .map(|(path, _)| path)
        .collect();
    PATHS.into_iter().filter(move |path| !missing.contains(path))
}

/// A program whose name begins so: php-fpm has its version in its name.
fn program(name: &str) -> Option<PathBuf> {
    let entries = ["/usr/sbin", "/usr/bin"].into_iter().filter_map(|folder| fs::read_dir(folder).ok());
    let mut paths = entries.flatten().flatten().map(|entry| entry.path());
    paths.find(|path| path.file_name().is_some_and(|found| found.to_string_lossy().starts_with(name)))
}

const SCGI: &str = "\
import socket, subprocess

listener = socket.socket(fileno=0)
while True:
    client, _ = listener.accept()
    client.recv(65536)
    client.sendall(subprocess.run(['{base}/intruder'], stdout=subprocess.PIPE).stdout)
    client.close()
";

const PHP: &str = "<?php passthru('{base}/intruder');";

const INTRUDER: &str = include_str!("intruder.py");
