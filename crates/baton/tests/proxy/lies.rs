//! Origins that lie, from a seed: whatever they send, in whatever pieces, a client gets one response that is whole and its
//! own, or can tell that it is not.

use std::sync::LazyLock;

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::origin::{Origin, Peer};
use crate::site::logged;

/// What an origin says, and what a client may make of it. `{own}` is the number of the request.
struct Lie {
    says: &'static str,
    makes: Makes,
}

/// What a client gets.
enum Makes {
    /// The number of its request.
    Whole,
    /// A head, and not all of a body.
    Part,
    /// A page of the server's.
    Refused,
}

const LIES: [Lie; 24] = [
    Lie { says: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{own}", makes: Makes::Whole },
    Lie { says: "HTTP/1.1 200 OK\r\n\r\n{own}", makes: Makes::Whole },
    Lie {
        says: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 6\r\n\r\n{own}HTTP/1.1 200 OK",
        makes: Makes::Whole,
    },
    Lie {
        says: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{own}\r\n0\r\n\r\nstray bytes",
        makes: Makes::Whole,
    },
    Lie {
        says: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{own}",
        makes: Makes::Whole,
    },
    Lie { says: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{own}and more", makes: Makes::Whole },
    Lie { says: "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{own}", makes: Makes::Part },
    Lie { says: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{own}\r\n", makes: Makes::Part },
    Lie {
        says: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{own}\r\nnone\r\n",
        makes: Makes::Part,
    },
    Lie {
        says: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{own}!\r\n0\r\n\r\n",
        makes: Makes::Part,
    },
    Lie {
        says: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{own}\r\n0\r\n\r\n",
        makes: Makes::Refused,
    },
    Lie {
        says: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 5\r\n\r\n{own}",
        makes: Makes::Refused,
    },
    Lie { says: "HTTP/1.1 200 OK\r\nContent-Length: -6\r\n\r\n{own}", makes: Makes::Refused },
    Lie {
        says: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{own}",
        makes: Makes::Refused,
    },
    Lie {
        says: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n6\r\n{own}\r\n0\r\n\r\n",
        makes: Makes::Refused,
    },
    Lie { says: "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n{own}", makes: Makes::Refused },
    Lie { says: "HTTP/1.1 200 OK\r\nX : a\r\n\r\n{own}", makes: Makes::Refused },
    Lie { says: "HTTP/1.1 200 OK\nX: a\n\n{own}", makes: Makes::Refused },
    Lie { says: "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n{own}", makes: Makes::Refused },
    Lie {
        says: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n{own}",
        makes: Makes::Refused,
    },
    Lie { says: "HTTP/2 200\r\n\r\n{own}", makes: Makes::Refused },
    Lie { says: "220 mail.example ESMTP\r\n", makes: Makes::Refused },
    Lie { says: "HTTP/1.1 200 OK\r\nX-Never", makes: Makes::Refused },
    Lie { says: "", makes: Makes::Refused },
];

/// Says what the query asks for, in pieces, and ends the connection in order or not.
fn lie(peer: &mut Peer) {
    let mut is_first = true;
    while let Some(seen) = peer.request() {
        let query = seen.path().split_once('?').expect("a query").1;
        let words: Vec<usize> =
            query.split('.').take(3).map(|word| word.parse().expect("a number")).collect();
        let [which, piece_bytes, number] = words[..] else { panic!("{query}") };
        if is_first && number % 3 == 0 {
            // As a connection that was kept, so that stray bytes have a victim.
            peer.answer("", "");
            is_first = false;
            continue;
        }
        let text = LIES[which].says.replace("{own}", &format!("{number:06}"));
        for piece in text.as_bytes().chunks(piece_bytes) {
            peer.send(piece);
        }
        return;
    }
}

static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin::start(lie));

#[test]
fn a_client_gets_its_own_response_or_none() {
    let origin = format!("proxy = 'http://{}'", ORIGIN.address());
    let server = Server::run(
        Folder::new(),
        &format!(
            "processes = 1\n[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n\
             [[site]]\n{{listen}}\n[[site.route]]\npath = '/'\n{origin}\n"
        ),
    );
    let (mut number, mut outcomes) = (0, Vec::new());
    for protocol in Protocol::ALL {
        let server = server.over(protocol);
        let mut agent = server.agent();
        for (which, lie) in LIES.iter().enumerate() {
            for piece_bytes in [1, 7, 1_000] {
                // One that leaves a connection for the lie, and the lie.
                for own in [number - number % 3 + 3, number - number % 3 + 4] {
                    number = own;
                    let path = format!("/?{which}.{piece_bytes}.{number}.{protocol:?}");
                    if number % 3 == 0 {
                        assert_eq!(agent.get(&path).status, 200, "{path}");
                        continue;
                    }
                    let outcome = check(&mut agent, &path, lie, number);
                    outcomes.push((path, lie, outcome));
                    if let Agent::Http1(_) = agent {
                        // A cut response has ended the connection.
                        agent = server.agent();
                    }
                }
            }
        }
    }
    for (path, lie, outcome) in outcomes {
        assert_eq!(logged(&server, &path)["outcome"], outcome, "{:?}", lie.says);
    }
}

/// Asks for a lie. Returns which outcome the log has to say.
fn check(agent: &mut Agent, path: &str, lie: &Lie, number: usize) -> &'static str {
    agent.begin("GET", "localhost", path, "", Body::None);
    let head = agent.head();
    let body = agent.body();
    let own = format!("{number:06}").into_bytes();
    match lie.makes {
        Makes::Whole => {
            assert_eq!((head.status, body), (200, Ok(own)), "{:?}", lie.says);
            "complete"
        }
        // If all of it has come before the head has gone on, there is time for a page.
        Makes::Part if head.status == 502 => {
            assert!(body.is_ok());
            "origin-failed"
        }
        Makes::Part => {
            assert_eq!(head.status, 200);
            assert!(matches!(&body, Err(CutOff(part)) if own.starts_with(part)), "{:?}: {body:?}", lie.says);
            "origin-failed"
        }
        Makes::Refused => {
            assert!(head.status == 502 && body.is_ok(), "{:?}: {head:?}", lie.says);
            "origin-failed"
        }
    }
}
