//! A DokuWiki from the distribution's package: a real application with logins, forms, uploads and downloads, which
//! keeps everything in files.
//!
//! Its scripts exist once, its data once per path, so each visitor starts from the same state. The parameter `WIKI`
//! selects the data.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::folder::Folder;

/// The login, and its password.
pub(crate) const USER: &str = "admin";
pub(crate) const PASSWORD: &str = "password";

/// Where the distribution has it, and where its settings are.
const INSTALLED: &str = "/usr/share/dokuwiki";
const SETTINGS: &str = "/etc/dokuwiki";

/// Nothing that is shown depends on the time, and nothing on the port. PHP packs what clients want packed.
const LOCAL: &str = r"<?php
$conf['title'] = 'Wiki of the tests';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['savedir'] = '{data}';
$conf['securecookie'] = 0;
$conf['dformat'] = 'once';
$conf['userewrite'] = 2;
$conf['gzip_output'] = 1;
$conf['updatecheck'] = 0;
$conf['send404'] = 1;
$conf['xsendfile'] = {xsendfile};
";

/// An MD5 sum is an old, but an accepted form of a password.
const USERS: &str = "admin:5f4dcc3b5aa765d61d8327deb882cf99:The Admin:admin@wiki.test:admin,user\n";
const RULES: &str = "* @ALL 1\n* @user 8\n";

/// Reports the answering process's descriptors and mappings, and the extension's counters.
const HOLDS: &str = "<?php if (function_exists('baton_status')) echo json_encode(baton_status()), \"\\n\";
foreach (scandir('/proc/self/fd') as $fd) echo @readlink(\"/proc/self/fd/$fd\"), \"\\n\";
readfile('/proc/self/maps');";

/// A wiki's data before any edit.
const EMPTY: [&str; 11] = [
    "attic",
    "cache",
    "index",
    "locks",
    "log",
    "media",
    "media_attic",
    "media_meta",
    "meta",
    "pages/wiki",
    "tmp",
];

/// The scripts, in the folder's document root.
pub(crate) fn install(folder: &Folder) {
    let parts = ["doku.php", "index.php", "feed.php", "VERSION", "inc", "lib", "vendor"];
    let parts = parts.map(|part| Path::new(INSTALLED).join(part));
    // Some unused parts are readable only for root; the check below finds missing ones.
    let mut copy = Command::new("cp");
    copy.args(["--recursive", "--dereference", "--preserve=timestamps"]).args(parts).arg(folder.root());
    let _ = copy.stderr(std::process::Stdio::null()).status().expect("cp");
    assert!(
        folder.path("lib/exe/mediamanager.php").exists(),
        "no DokuWiki: install dokuwiki, as scripts/setup-tests does"
    );
    folder.write("inc/preload.php", "<?php define('DOKU_CONF', $_SERVER['WIKI'] . '/conf/');");
    folder.write("holds.php", HOLDS);
}

/// Data for a path; returns their folder.
///
/// `sends_files`: whether files leave with `X-Sendfile`.
pub(crate) fn data(folder: &Folder, name: &str, sends_files: bool) -> PathBuf {
    let own = folder.base().join("wikis").join(name);
    let (settings, data) = (own.join("conf"), own.join("data"));
    fs::create_dir_all(&settings).expect("a folder");
    for part in EMPTY {
        fs::create_dir_all(data.join(part)).expect("a folder");
    }
    for entry in fs::read_dir(SETTINGS).expect("the settings of DokuWiki").map_while(Result::ok) {
        let path = entry.path();
        // Users and rules are root's to read, and replaced below.
        if path.is_file() && !entry.file_name().to_string_lossy().ends_with(".auth.php") {
            fs::copy(&path, settings.join(entry.file_name())).expect("a copy");
        }
    }
    let local = LOCAL
        .replace("{data}", data.to_str().expect("a path in UTF-8"))
        .replace("{xsendfile}", if sends_files { "2" } else { "0" });
    for (name, text) in [("local.php", &*local), ("users.auth.php", USERS), ("acl.auth.php", RULES)] {
        fs::write(settings.join(name), text).expect("a file");
    }
    // Inputs of links to images.
    for name in ["_htcookiesalt", "_htcookiesalt2"] {
        fs::write(data.join("meta").join(name), "the same for all").expect("a file");
    }
    let page = "====== Welcome ======\n\nThis is the //first// page.\n";
    fs::write(data.join("pages/start.txt"), page).expect("a page");
    own
}
