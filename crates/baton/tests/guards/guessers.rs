//! Who guesses passwords keeps only other guessers waiting.

use crate::common::client::Client;
use crate::common::protocol::Protocol;
use crate::site::{basic, run};

/// Goal: handshakes and files from the disk do not queue behind passwords, and one client has no more than its share of those.
/// Method: each guess costs a processor seconds. A client that is answered before the first of them has not waited for them.
fn guessers_stop_no_others(architecture: &str) {
    // The highest price that a configuration may name.
    let hash = "$2b$15$Y7tn7KDUGz50fjpJBuO4kOapT8GeL/J4j5tzkDqQDUrbkxC0qZwye";
    let server = run(&format!(
        "architecture = '{architecture}'\nprocesses = 1\n[[site]]\n{{listen}}\nroot = '{{root}}'\n[[site.route]]\npath = \
         '/users'\nbasic_auth = {{ users = {{ ada = '{hash}' }} }}\n"
    ));
    let mut guessers: Vec<Client> = (0..GUESSERS)
        .map(|guess| {
            let mut client = server.connect();
            let fields = basic("ada", &guess.to_string());
            client.send(format!("GET /users/secret.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
            client
        })
        .collect();
    let refused = guessers.split_off(ADMITTED);
    for mut client in refused {
        assert_eq!(client.response().status, 429);
    }
    let victim = server.over(Protocol::Https);
    for path in ["/shared/small.txt", "/shared/large.txt", "/shared/folder/"] {
        assert_eq!(victim.get(path).status, 200);
    }
    assert!(guessers.iter().all(|client| !client.has_input()), "the guesses took no time");
}

crate::common::matrix::usual_architectures! { crate::architectures::under_each! [by name: guessers_stop_no_others] }

const GUESSERS: usize = 40;

/// Of one client.
const ADMITTED: usize = 24;
