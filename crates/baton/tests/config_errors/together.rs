//! Settings that contradict each other, and mistakes of all sorts in one run.

use crate::refused;

/// Possible answers of a route, each valid alone.
const ANSWERS: [(&str, &str); 5] = [
    ("redirect", r#"redirect = { to = "/new" }"#),
    ("respond", "respond = { status = 403 }"),
    ("fastcgi", r#"fastcgi = { to = "unix:a.sock" }"#),
    ("scgi", r#"scgi = { to = "unix:b.sock" }"#),
    ("cgi", r#"cgi = { scripts = [".cgi"] }"#),
];

/// Goal: no answer of a route silently wins over another. Method: all pairs, in both orders.
#[test]
fn a_route_has_one_answer() {
    for (first, first_line) in ANSWERS {
        for (second, second_line) in ANSWERS.into_iter().filter(|(second, _)| *second != first) {
            let (one, two) =
                (first_line.split_once(" = ").unwrap().1, second_line.split_once(" = ").unwrap().1);
            refused(
                &format!(
                    "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\n{first_line}\n{second_line}\n"
                ),
                &format!(
                    "error: a route has either `{first}` or `{second}`\n --> baton.toml:6:{column}\n  |\n\
                     5 | {first_line}\n  | {blank_one}{minuses} answers already\n\
                     6 | {second_line}\n  | {blank_two}{carets} answers as well",
                    column = second.len() + 4,
                    blank_one = " ".repeat(first.len() + 3),
                    minuses = "-".repeat(one.len()),
                    blank_two = " ".repeat(second.len() + 3),
                    carets = "^".repeat(two.len()),
                ),
            );
        }
    }
}

/// Goal: one run shows mistakes in single settings, contradictions and duplicates, in the order of the file, and nothing
/// that only follows from another: no second default site, no missing folder, no address where one was refused.
#[test]
fn mistakes_of_all_sorts_in_one_run() {
    refused(
        r#"[limits]
fields_max = "many"
head_bytes_max = 4096

[[site]]
root = "ww"
error_pages = { 404 = "404.html" }

[[site.route]]
path = "/a"
browse = true

[[site.route]]
path = "/b"
fastcgi = { transport = "passfdd" }

[[site.route]]
path = "/c"
fastcgi = { to = "nowhere", scripts = ["php"] }
redirect = { to = "/new" }

[[site.route]]
path = "/a/"

[[site]]
root = "www"
hosts = ["bad host"]

[[site]]
root = "www"
"#,
        r#"
error: `limits.fields_max` cannot be a string
 --> baton.toml:2:14
  |
2 | fields_max = "many"
  |              ^^^^^^ expected an integer from 1 to 256

error: `limits.target_bytes_max` is larger than `limits.head_bytes_max`
 --> baton.toml:3:18
  |
1 | [limits]
  | -------- targets, a part of them, 8192
2 | fields_max = "many"
3 | head_bytes_max = 4096
  |                  ^^^^ heads have up to 4096 bytes

error: `site.root` cannot be served
 --> baton.toml:6:8
  |
6 | root = "ww"
  |        ^^^^ DIR/ww: No such file or directory (os error 2)

error: an application that is nowhere
  --> baton.toml:15:11
   |
15 | fastcgi = { transport = "passfdd" }
   |           ^^^^^^^^^^^^^^^^^^^^^^^^^ has neither `to` nor `command`
   |
   = help: give its address, or the command that starts it

error: `site.route.fastcgi.transport` has an unknown word
  --> baton.toml:15:25
   |
15 | fastcgi = { transport = "passfdd" }
   |                         ^^^^^^^^^ expected one of "auto", "unix", "inet", "shm", "passfd"
   |
   = help: did you mean `passfd`?

error: `site.route.fastcgi.to` has an address that no application can have
  --> baton.toml:19:18
   |
19 | fastcgi = { to = "nowhere", scripts = ["php"] }
   |                  ^^^^^^^^^ `nowhere` is neither an IP address nor a host name with a port
   |
   = help: accepted: "unix:/path", "127.0.0.1:9000", "[::1]:9000" or "host:9000"

error: `site.route.fastcgi.scripts` is not the ending of a name
  --> baton.toml:19:40
   |
19 | fastcgi = { to = "nowhere", scripts = ["php"] }
   |                                        ^^^^^ expected something like ".php"

error: a route has either `fastcgi` or `redirect`
  --> baton.toml:20:12
   |
19 | fastcgi = { to = "nowhere", scripts = ["php"] }
   |           ------------------------------------- answers already
20 | redirect = { to = "/new" }
   |            ^^^^^^^^^^^^^^^ answers as well

error: two routes have the path /a/
  --> baton.toml:23:8
   |
10 | path = "/a"
   |        ---- is asked first
...
23 | path = "/a/"
   |        ^^^^^ would never be asked

error: `site.hosts` has a bad host name
  --> baton.toml:27:10
   |
27 | hosts = ["bad host"]
   |          ^^^^^^^^^^ expected a host such as "example.org" or "*.example.org", without a port

error: two sites are the default of 127.0.0.1:8080
  --> baton.toml:29:1
   |
 5 | [[site]]
   | -------- is asked first
...
29 | [[site]]
   | ^^^^^^^^ would never be asked
   |
   = help: give them different `hosts`, or different addresses in `listen`
"#,
    );
}

/// Goal: a refused value does not cause errors that only follow from its absence.
#[test]
fn consequences_of_an_error_are_not_reported() {
    refused(
        r#"[limits]
target_bytes_max = "9 parsecs"
head_bytes_max = 4096

[[site]]
root = "www"
listen = ["80x80", "127.0.0.1:80"]

[[site]]
root = "www"
listen = "0.0.0.0:80"

[[site.route]]
path = "a"

[[site.route]]
path = "*"

[[site.route]]
root = "ww"
cgi = { scripts = [".cgi"], processes = { min = 0, mox = 2 } }
"#,
        r#"
error: `limits.target_bytes_max` is not a size
 --> baton.toml:2:20
  |
2 | target_bytes_max = "9 parsecs"
  |                    ^^^^^^^^^^^ expected a number and one of TiB, GiB, MiB, KiB, GB, MB, kB, B

error: `site.listen` has an address that cannot be listened on
 --> baton.toml:7:11
  |
7 | listen = ["80x80", "127.0.0.1:80"]
  |           ^^^^^^^ `80x80` is not a port: expected 0 to 65535
  |
  = help: accepted: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "8080" (this host only), ":8080" (all interfaces) or "unix:/path"

error: `site.route.path` does not begin with `/`
  --> baton.toml:14:8
   |
14 | path = "a"
   |        ^^^ expected "/a"

error: `site.route.path` is a prefix, not a pattern
  --> baton.toml:17:8
   |
17 | path = "*"
   |        ^^^ `*` would stand for itself only
   |
   = help: write `glob = "*"`
   = help: or write "/", which holds for everything below it
   = help: a `*` in the path of a URL is written `%2A`

error: `site.route.path` is missing
  --> baton.toml:19:1
   |
19 | [[site.route]]
   | ^^^^^^^^^^^^^^ must be given here

error: `site.route.root` cannot be served
  --> baton.toml:20:8
   |
20 | root = "ww"
   |        ^^^^ DIR/ww: No such file or directory (os error 2)

error: `site.route.cgi.processes` is out of range
  --> baton.toml:21:49
   |
21 | cgi = { scripts = [".cgi"], processes = { min = 0, mox = 2 } }
   |                                                 ^ expected an integer from 1 to 4_096

error: `site.route.cgi.processes` has a key that it cannot have
  --> baton.toml:21:52
   |
21 | cgi = { scripts = [".cgi"], processes = { min = 0, mox = 2 } }
   |                                                    ^^^ expected min, max or idle_s
"#,
    );
}

#[test]
fn every_word_of_a_command_is_read() {
    refused(
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\nfastcgi = { command = [\"no-such-program\", 5, true] }\n",
        r#"
error: `site.route.fastcgi.command` names a program that cannot be run
 --> baton.toml:5:24
  |
5 | fastcgi = { command = ["no-such-program", 5, true] }
  |                        ^^^^^^^^^^^^^^^^^ it is in none of the folders of PATH

error: `site.route.fastcgi.command` cannot be an integer
 --> baton.toml:5:43
  |
5 | fastcgi = { command = ["no-such-program", 5, true] }
  |                                           ^ expected a string

error: `site.route.fastcgi.command` cannot be a boolean
 --> baton.toml:5:46
  |
5 | fastcgi = { command = ["no-such-program", 5, true] }
  |                                              ^^^^ expected a string
"#,
    );
}

/// Goal: a script is not sent as the page of an error either.
#[test]
fn an_error_page_that_is_a_script() {
    refused(
        "[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"404.PHP\" }\n",
        r#"
error: the page for status 404 is a script
 --> baton.toml:3:15
  |
3 | error_pages = { 404 = "404.PHP" }
  |               ^^^^^^^^^^^^^^^^^^^ the source code of DIR/www/404.PHP would be sent
  |
  = help: name a file that is sent as it is
"#,
    );
}

/// Goal: no setting lets a slow client block others silently, and settings without effect are refused. Method:
/// blocking modes of `sendfile`, and architectures that do not allow them.
#[test]
fn sendfile_waits_for_clients_where_that_holds_up_no_others() {
    for mode in ["blocking", "by-size"] {
        refused(
            &format!(
                "[server]\narchitecture = \"n-copy\"\n[send]\nsendfile = \"{mode}\"\n[[site]]\nroot = \"www\"\n"
            ),
            &format!(
                r#"
error: `send.sendfile` must be non-blocking under `n-copy`
 --> baton.toml:4:12
  |
2 | architecture = "n-copy"
  |                -------- under this architecture
3 | [send]
4 | sendfile = "{mode}"
  |            {carets} a client that reads nothing would block all others of its copy: one thread does everything, and no other copy has their socket
  |
  = help: leave `send.sendfile` as it is, or choose one of `symped`, `shared-symped`, `pipeline`, `threads`, `mt`, `mp`
"#,
                carets = "^".repeat(mode.len() + 2)
            ),
        );
    }
    let otherwise =
        "[send]\nway = \"sendfile\"\n[server]\narchitecture = \"threads-cache\"\n[[site]]\nroot = \"www\"\n";
    refused(
        otherwise,
        r#"
error: `send.way` does not apply to `threads-cache`
 --> baton.toml:2:7
  |
2 | way = "sendfile"
  |       ^^^^^^^^^^ is about `sendfile`, which this architecture does without
3 | [server]
4 | architecture = "threads-cache"
  |                --------------- under this architecture
  |
  = help: take it out, or choose `threads`
"#,
    );
}

/// The default, which is not written, counts as well.
#[test]
fn sendfile_does_not_wait_for_clients_by_default() {
    let told = "error: `send.sendfile` must be non-blocking under `auto`\n --> baton.toml:2:12\n  |\n\
                2 | sendfile = \"blocking\"\n  |            ^^^^^^^^^^ a client that reads nothing would block the disk \
                jobs of all others: it would hold a helper\n  |\n  = help: leave `send.sendfile` as it is, or choose one \
                of `symped`, `shared-symped`, `pipeline`, `threads`, `mt`, `mp`";
    refused("[send]\nsendfile = \"blocking\"\n[[site]]\nroot = \"www\"\n", told);
}
