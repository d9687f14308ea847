//! How often a client may ask. No test waits for a bucket to fill: a token takes an hour.

use crate::common::agent::Agent;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::site::{HASH, basic, run, spellings};

fn server(architecture: &str, limits: &str) -> Server {
    run(&format!("architecture = '{architecture}'\n[[site]]\n{{listen}}\nroot = '{{root}}'\n{limits}"))
}

/// So many requests pass, whatever the next ones are and wherever they arrive.
#[test]
fn workers_share_the_buckets_and_a_reload_keeps_them() {
    for architecture in ["n-copy", "amped", "pipeline"] {
        let server = server(
            architecture,
            "rate_limit = { requests = 1, per = '1h', burst = 5 }\n[[site.route]]\npath = '/open'\n[[site.route]]\npath = \
             '/fixed'\nrespond = { status = 200 }\n[[site.route]]\npath = '/free'\nrespond = { status = 200 }\nrate_limit = 'off'\n",
        );
        let forged = "X-Forwarded-For: 192.0.2.1\r\n";
        let mut passed = 0;
        for (index, path) in spellings("open").iter().chain(&spellings("read-only")).enumerate() {
            let protocol = Protocol::ALL[index % 4];
            let response = server.over(protocol).agent().ask("GET", path, forged);
            match response.status {
                429 => {
                    let wait: u64 = response.field("retry-after").expect("a wait").parse().expect("seconds");
                    assert!((1..=3_600).contains(&wait), "{wait}");
                }
                _ => passed += 1,
            }
        }
        assert_eq!(passed, 5, "{architecture}");
        for (method, path) in
            [("HEAD", "/open/secret.txt"), ("OPTIONS", "/fixed"), ("POST", "/none"), ("get", "/")]
        {
            assert_eq!(server.agent().ask(method, path, "").status, 429, "{method} {path}");
        }
        assert_eq!(server.get("/free").status, 200);
        server.ctl(&["reload"]);
        assert_eq!(server.get("/open/secret.txt").status, 429, "{architecture}: a reload keeps the buckets");
    }
}

#[test]
fn requests_are_counted_by_field_and_by_user() {
    let server = server(
        "auto",
        &format!(
            "[[site.route]]\npath = '/open'\nrate_limit = {{ requests = 1, per = '1h', burst = 2, key = 'header:X-Key' \
             }}\n[[site.route]]\npath = '/read-only'\nbasic_auth = {{ users = {{ ada = '{HASH}', eve = '{HASH}' }} }}\nrate_limit = \
             {{ requests = 1, per = '1h', burst = 2, key = 'user' }}\n"
        ),
    );
    let statuses = |client: &mut Agent, path: &str, fields: &str| {
        [(); 3].map(|()| client.ask("GET", path, fields).status)
    };
    let mut client = server.agent();
    for key in ["X-Key: 1\r\n", "x-key: 2\r\n", ""] {
        assert_eq!(statuses(&mut client, "/open/secret.txt", key), [200, 200, 429], "{key}");
    }
    for user in ["ada", "eve"] {
        assert_eq!(statuses(&mut client, "/read-only/secret.txt", &basic(user, "secret")), [200, 200, 429]);
    }
    assert_eq!(client.get("/read-only/secret.txt").status, 401);
    assert_eq!(client.get("/denied/secret.txt").status, 200, "elsewhere there is no limit");
}

/// Goal: made-up values of a field are no way around a limit. Method: a new value in each request, until one is refused.
#[test]
fn new_values_do_not_evade_a_limit_by_field() {
    let server = server(
        "auto",
        "[[site.route]]\npath = '/open'\nrate_limit = { requests = 1, per = '1h', burst = 2, key = 'header:X-Key' }\n",
    );
    let mut client = server.agent();
    let passed = (0..100)
        .take_while(|key| client.ask("GET", "/open/secret.txt", &format!("X-Key: {key}\r\n")).status == 200)
        .count();
    assert_eq!(passed, 2 * 16);
}

/// A guess takes a token before it is verified: a client cannot make the server compute hashes without end.
#[test]
fn guesses_are_limited() {
    let server = server(
        "auto",
        &format!(
            "basic_auth = {{ users = {{ ada = '{HASH}' }} }}\nrate_limit = {{ requests = 1, per = '1h', burst = 3 }}\n"
        ),
    );
    let mut client = server.agent();
    let guesses = ["a", "b", "c", "d", "secret"]
        .map(|guess| client.ask("GET", "/open/secret.txt", &basic("ada", guess)).status);
    assert_eq!(guesses, [401, 401, 401, 429, 429]);
}
