//! A site with something to guard, and everything that a client may try to get at it.

use std::collections::HashMap;
use std::fs;
use std::sync::{LazyLock, Mutex, PoisonError};

use base64::Engine as _;

use crate::common::agent::Agent;
use crate::common::client::Response;
use crate::common::folder::{Folder, install_program};
use crate::common::server::Server;

/// What no client of a guarded route may see.
pub(crate) const SECRET: &str = "the secret";

/// Of `secret`, by bcrypt at its lowest price.
pub(crate) const HASH: &str = "$2y$04$M8GN1LhxmWzK34qTmzdeB.JoTi2x7t9.WZghfLTSiQkvuJujEDW9.";

/// Of `pa:ss`, by argon2 with little memory.
const ARGON2: &str =
    "$argon2id$v=19$m=64,t=1,p=1$TXdXYmNTMTJMaFU2Q2t2ag$sNH2ZFtipuDffdf0vubA9NS2XrTi9zoRCZasYzbrP8A";

/// The field with a name and a password.
pub(crate) fn basic(name: &str, password: &str) -> String {
    format!(
        "Authorization: Basic {}\r\n",
        base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"))
    )
}

/// One server for each architecture.
static SERVERS: LazyLock<Mutex<HashMap<String, &'static Server>>> = LazyLock::new(Mutex::default);

pub(crate) fn server(architecture: &str) -> &'static Server {
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    servers.entry(architecture.to_owned()).or_insert_with(|| Box::leak(Box::new(started(architecture))))
}

fn started(architecture: &str) -> Server {
    run(&format!("architecture = \"{architecture}\"\n{}", include_str!("site.toml")))
}

/// A server of the same folder with another configuration.
pub(crate) fn run(configuration: &str) -> Server {
    let folder = Folder::new();
    for place in ["denied", "allowed", "read-only", "users", "open"] {
        folder.write(&format!("{place}/secret.txt"), SECRET);
    }
    for place in ["denied", "users", "open"] {
        let program = "#!/bin/sh\necho 'Content-Type: text/plain'; echo; echo 'the secret'; env\n";
        install_program(&folder.path(&format!("{place}/run.cgi")), program);
    }
    folder.write("shared/small.txt", "small");
    folder.write("shared/large.txt", "large ".repeat(100_000));
    folder.write("shared/folder/index.html", "index");
    folder.write("shared/users/secret.txt", SECRET);
    let program = "#!/bin/sh\necho 'Content-Type: text/plain'; echo 'Access-Control-Allow-Origin: https://evil.com'\n\
                   echo 'Access-Control-Allow-Credentials: true'; echo 'Vary: Accept'; echo; echo \"$REQUEST_METHOD\"\n";
    install_program(&folder.path("shared/run.cgi"), program);
    fs::write(folder.base().join("users"), format!("# staff\nbob:{ARGON2}\n")).expect("a file");
    Server::run(folder, &configuration.replace("HASH", HASH))
}

/// Ways to spell `/PLACE/secret.txt`, and some that only look like it.
pub(crate) fn spellings(place: &str) -> Vec<String> {
    let (first, rest) = place.split_at(1);
    let encoded = format!("%{:02x}{rest}", first.as_bytes()[0]);
    [
        format!("/{place}/secret.txt"),
        format!("/{place}/secret.txt?x=/open/"),
        format!("/{encoded}/secret.txt"),
        format!("/%25{}/secret.txt", &encoded[1..]),
        format!("//{place}/secret.txt"),
        format!("/{place}//secret.txt"),
        format!("/./{place}/./secret.txt"),
        format!("/open/../{place}/secret.txt"),
        format!("/open/%2e%2E/{place}/secret.txt"),
        format!("/open/..%2f{place}/secret.txt"),
        format!("/open%2F..%2F{place}%2Fsecret.txt"),
        format!("/%2F{place}%2Fsecret.txt"),
        format!("/{place}%2Fsecret.txt"),
        format!("/{place}/x/../secret.txt"),
        format!("/{place}/../{place}/secret.txt"),
        format!("/{place}/secret.txt/"),
        format!("/{place}/secret.txt/."),
        format!("/{}/secret.txt", place.to_uppercase()),
        format!("/{place}%5Csecret.txt"),
        format!("/{place};x/secret.txt"),
        format!("/{place}%00/secret.txt"),
        format!("http://localhost/{place}/secret.txt"),
        format!("http://localhost//{place}/secret.txt"),
    ]
    .into()
}

/// Fields that pretend to be another client, another path or another method.
pub(crate) const PRETENCES: [&str; 8] = [
    "X-Forwarded-For: 10.0.0.1\r\n",
    "Forwarded: for=10.0.0.1\r\n",
    "X-Real-IP: 10.0.0.1\r\n",
    "X-Original-URL: /open/secret.txt\r\n",
    "X-Rewrite-URL: /open/secret.txt\r\n",
    "X-HTTP-Method-Override: GET\r\n",
    "Range: bytes=0-3\r\n",
    "If-None-Match: *\r\n",
];

/// Asks in every way that there is. No answer has the secret, or says that there is one.
pub(crate) fn attack(client: &mut Agent, place: &str, refused: u16) {
    let check = |response: &Response, what: &str| {
        assert!(!response.text().contains(SECRET), "{what} gets {}", response.text());
        assert!(response.status >= 400, "{what}: {}", response.line);
    };
    for path in spellings(place) {
        let response = client.get(&path);
        check(&response, &path);
        assert!([refused, 400, 404].contains(&response.status), "{path}: {}", response.line);
    }
    let path = format!("/{place}/secret.txt");
    for fields in PRETENCES {
        let response = client.ask("GET", &path, fields);
        check(&response, fields);
        assert_eq!(response.status, refused, "{fields}");
    }
    for method in ["HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "get", "PROPFIND"] {
        check(&client.ask(method, &path, ""), method);
    }
    assert_eq!(client.get(&path).status, refused);
    // What is missing is refused, too: the answer does not say what there is.
    assert_eq!(client.get(&format!("/{place}/none")).status, refused);
    assert_eq!(client.get(&format!("/{place}")).status, refused, "the folder itself");
    assert!(client.get("/open/secret.txt").text().contains(SECRET), "the connection goes on");
}
