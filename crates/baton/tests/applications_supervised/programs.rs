//! Other programs in pools that replace them under constant load: the Python package, one process with one request at
//! a time, and php-fpm, with its own processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::processes::{pid_of, pools};

const CLIENTS: usize = 4;
const REQUESTS: usize = 30;

/// Asks for `/app` as fast as several clients can: how often each process has answered.
fn ask_without_pause(server: &Server) -> BTreeMap<i32, usize> {
    let answered = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = server.connect();
                    (0..REQUESTS).map(|_| pid_of(&client.get("/app"))).collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect::<Vec<_>>()
    });
    let mut requests = BTreeMap::new();
    answered.into_iter().for_each(|pid| *requests.entry(pid).or_default() += 1);
    requests
}

fn run(folder: Folder, application: &str) -> Server {
    let text = format!(
        "processes = 2\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{{root}}'\n[[site.route]]\npath = '/app'\n\
         fastcgi = {{ user = 'root', {application} }}\n"
    );
    Server::run(folder, &text)
}

fn count(server: &Server, what: &str) -> u64 {
    pools(server)[0][what].as_u64().unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn python_is_recycled_under_load() {
    let folder = Folder::new();
    let program = "import os\n\ndef application(environ, start_response):\n    \
                   start_response('200 OK', [('Content-Type', 'text/plain')])\n    \
                   return [b'pid=%d' % os.getpid()]\n";
    fs::write(folder.base().join("app.py"), program).expect("a program");
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/python/src");
    let application = format!(
        "command = ['/usr/bin/python3', '-B', '-m', 'baton_fastcgi', 'app', '--processes', '0', '--fd', '0', \
         '--chdir', '{}'], environment = {{ PYTHONPATH = '{}' }}, \
         processes = {{ min = 1, max = 2, idle_s = 60 }}, requests_max = 10, stop_signal = 'int'",
        folder.base().display(),
        package.display()
    );
    let server = run(folder, &application);
    let requests = ask_without_pause(&server);
    assert_eq!(requests.values().sum::<usize>(), CLIENTS * REQUESTS);
    assert!(requests.values().all(|requests| *requests <= 10), "{requests:?}");
    assert!(requests.values().filter(|requests| **requests < 10).count() <= 2, "{requests:?}");
    wait_until("all that had enough have gone", || count(&server, "recycled") >= 11);
    assert_eq!((count(&server, "restarts"), count(&server, "killed")), (0, 0), "{}", server.said());
}

/// php-fpm is replaced as a whole, when none of its processes has anything to do.
#[test]
fn php_fpm_is_recycled_under_load() {
    let folder = Folder::new();
    let script = folder.base().join("pid.php");
    fs::write(&script, "<?php echo 'pid=', posix_getppid();").expect("a script");
    let entries = fs::read_dir("/usr/sbin").expect("a folder").flatten().map(|entry| entry.path());
    let mut found = entries.filter(|path| path.to_string_lossy().contains("/php-fpm"));
    let fpm: PathBuf = found.next().expect("no php-fpm: install it, as scripts/setup-tests does");
    let application = format!(
        "command = ['{}', 'app', 'php-fpm', '--children', '3', '{}'], params = {{ SCRIPT_FILENAME = '{}' }}, \
         processes = 1, concurrency = 3, requests_max = 20, stop_signal = 'quit'",
        env!("CARGO_BIN_EXE_baton"),
        fpm.display(),
        script.display()
    );
    let server = run(folder, &application);
    let requests = ask_without_pause(&server);
    assert_eq!(requests.values().sum::<usize>(), CLIENTS * REQUESTS);
    assert!(requests.len() >= 4 && requests.values().all(|requests| *requests < 20 + 3), "{requests:?}");
    assert_eq!((count(&server, "restarts"), count(&server, "killed")), (0, 0), "{}", server.said());
}
