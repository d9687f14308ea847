//! Names and passwords.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::agent::{Agent, Body};
use crate::common::server::{BATON, Server, wait_until};
use crate::site::{SECRET, attack, basic, run};

crate::protocols::over_every_protocol!(
    no_way_leads_past_a_password,
    users_get_what_they_ask_for,
    wrong_passwords_are_refused,
    a_body_arrives_behind_its_password,
);

fn no_way_leads_past_a_password(server: &Server) {
    attack(&mut server.agent(), "users", 401);
}

fn users_get_what_they_ask_for(server: &Server) {
    let mut client = server.agent();
    // The first request waits for a job, the others do not.
    for _ in 0..3 {
        assert_eq!(client.ask("GET", "/users/secret.txt", &basic("ada", "secret")).text(), SECRET);
    }
    let told = client.ask("GET", "/users/run.cgi", &basic("ada", "secret")).text().to_owned();
    assert!(told.contains("REMOTE_USER=ada\n") && told.contains("AUTH_TYPE=Basic\n"), "{told}");
    // Of the file, with a hash of argon2.
    assert_eq!(client.ask("GET", "/users/secret.txt", &basic("bob", "pa:ss")).text(), SECRET);
    assert_eq!(client.ask("HEAD", "/users/secret.txt", &basic("ada", "secret")).status, 200);
    let forged = "Remote-User: root\r\nREMOTE_USER: root\r\n";
    assert!(
        !client.ask("GET", "/open/run.cgi", forged).text().contains("\nREMOTE_USER="),
        "no user is known"
    );
}

fn wrong_passwords_are_refused(server: &Server) {
    let mut client = server.agent();
    assert_eq!(client.ask("GET", "/users/secret.txt", &basic("ada", "secret")).status, 200);
    for fields in [
        basic("ada", "Secret"),
        basic("ada", "secret "),
        basic("ada", ""),
        basic("Ada", "secret"),
        basic("eve", "secret"),
        basic("", "secret"),
        basic("bob", "secret"),
        basic("ada", "secret").replace("Basic", "Bearer"),
        basic("ada", "secret").replace("Basic ", "Basic"),
        [basic("ada", "secret"), basic("ada", "secret")].concat(),
        basic("ada", "secret").replace("Authorization", "Proxy-Authorization"),
        "Cookie: user=ada\r\n".to_owned(),
    ] {
        let response = client.ask("GET", "/users/secret.txt", &fields);
        assert_eq!(response.status, 401, "{fields}");
        let challenge = response.field("www-authenticate");
        assert_eq!(challenge, Some("Basic realm=\"staff\", charset=\"UTF-8\""), "{fields}");
        assert!(!response.text().contains(SECRET));
    }
    assert_eq!(client.get("/open/secret.txt").status, 200, "the connection goes on");
}

fn a_body_arrives_behind_its_password(server: &Server) {
    // A new password is verified for each: wrong ones are never remembered.
    for (fields, status) in [(basic("ada", "secret"), 200), (basic("ada", "wrong"), 401)] {
        let mut client = server.agent();
        client.begin("POST", "localhost", "/users/run.cgi", &fields, Body::Length(5));
        client.send_body(b"12345");
        client.finish_body();
        let response = client.response();
        assert_eq!(response.status, status, "{}", response.text());
        assert_eq!(response.text().contains("CONTENT_LENGTH=5"), status == 200);
    }
}

/// Two requests at once, and answers in their order, though the first one waits for a job.
#[test]
fn answers_stay_in_order() {
    let server = crate::site::server("auto");
    let mut client = server.connect();
    let head = |path: &str, fields: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let first = head("/users/secret.txt", &basic("ada", "never right"));
    client.send(first + &head("/open/secret.txt", "") + &head("/users/secret.txt", &basic("ada", "secret")));
    assert_eq!([(); 3].map(|()| client.response().status), [401, 200, 200]);
}

/// Goal: more requests than passwords may be verified at a time, with one that is not known yet, are all answered. Method: all
/// are there before the first answer can be, since verifying takes far longer than sending them.
#[test]
fn many_requests_with_one_password_are_answered() {
    // Of `secret`, at a price of bcrypt that takes a while.
    let hash = "$2b$10$Y7tn7KDUGz50fjpJBuO4kOapT8GeL/J4j5tzkDqQDUrbkxC0qZwye";
    let server = run(&format!(
        "processes = 1\n[[site]]\nlisten = '127.0.0.1:0'\nroot = '{{root}}'\nbasic_auth = {{ users = {{ ada = '{hash}' }} }}\n"
    ));
    let request = format!("GET /users/secret.txt HTTP/1.1\r\nHost: a\r\n{}\r\n", basic("ada", "secret"));
    let mut clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(&request));
    assert!(clients.iter_mut().all(|client| client.response().status == 200));
}

/// What an application has said to one user, the shared cache gives to no other.
#[test]
fn the_shared_cache_mixes_no_users() {
    let server = run(&format!(
        "[log]\naccess = '{{base}}/access.log'\nflush_ms = 10\n[[site]]\nlisten = '127.0.0.1:0'\nroot = '{{root}}'\nbasic_auth = \
         {{ users = {{ ada = '{hash}', eve = '{hash}' }} }}\n[[site.route]]\npath = '/open'\nscgi = \
         'off'\ncgi = {{ scripts = ['.cgi'] }}\ncache = {{ default_s = 60 }}\n",
        hash = crate::site::HASH
    ));
    let mut client = server.agent();
    for user in ["ada", "eve", "ada"] {
        let told = client.ask("GET", "/open/run.cgi", &basic(user, "secret")).text().to_owned();
        assert!(told.contains(&format!("REMOTE_USER={user}\n")), "{user}: {told}");
    }
    assert_eq!(client.get("/open/run.cgi").status, 401);
    assert_eq!(client.ask("GET", "/open/run.cgi", &basic("ada", "wrong")).status, 401);
    let log = server.folder().base().join("access.log");
    wait_until("users are in the log", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("127.0.0.1 - eve [") && log.contains("127.0.0.1 - - [")
    });
}

fn hashed(arguments: &[&str], password: &str) -> (bool, String) {
    let mut command = Command::new(BATON);
    command.arg("hash-password").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("its input").write_all(password.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    (output.status.success(), String::from_utf8(output.stdout).expect("text"))
}

/// The printed line is what `file` takes.
#[test]
fn the_command_makes_what_the_server_takes() {
    let (fine, bcrypt) = hashed(&["ada"], "new secret\n");
    assert!(fine && bcrypt.starts_with("ada:$2y$12$"), "{bcrypt}");
    let (fine, argon2) = hashed(&["bob", "--algorithm", "argon2"], "new secret");
    assert!(fine && argon2.starts_with("bob:$argon2id$"), "{argon2}");
    assert!(!hashed(&["a:b"], "x").0 && !hashed(&["ada"], "\n").0 && !hashed(&["ada"], &"x".repeat(73)).0);
    let folder = crate::common::folder::Folder::new();
    folder.write("secret.txt", SECRET);
    std::fs::write(folder.base().join("users"), bcrypt + &argon2).expect("written");
    let server = Server::run(
        folder,
        "[[site]]\nlisten = '127.0.0.1:0'\nroot = '{root}'\nbasic_auth = { file = '{base}/users' }\n",
    );
    let mut client: Agent = server.agent();
    for user in ["ada", "bob"] {
        assert_eq!(client.ask("GET", "/secret.txt", &basic(user, "new secret")).text(), SECRET);
        assert_eq!(client.ask("GET", "/secret.txt", &basic(user, "secret")).status, 401);
    }
}
