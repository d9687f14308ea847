//! What users read when a configuration is wrong, word for word.

mod applications;
mod comforts;
mod compression;
mod conditions;
mod cors;
mod guards;
mod logs;
mod passwords;
mod patterns;
mod tls;
mod together;

use std::path::Path;
use std::process::Command;

/// A configuration file named `baton.toml` in a folder of its own, with a folder `www` beside it, is refused with these
/// messages. The folder is called `DIR` in them.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("baton.toml"), text).unwrap();
    refused_in(dir.path(), &["check", "-c", "baton.toml"], expected);
}

#[track_caller]
fn refused_in(dir: &Path, arguments: &[&str], expected: &str) {
    std::fs::create_dir(dir.join("www")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_baton")).args(arguments).current_dir(dir).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap().replace(dir.to_str().unwrap(), "DIR");
    assert_eq!(told.trim_end(), expected.trim(), "{told}");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_key_with_a_slip_of_the_pen() {
    refused(
        "[limits]\nconections_max = 5\n\n[[site]]\nroot = \"www\"\n",
        r#"
error: unknown key `conections_max`
 --> baton.toml:2:1
  |
2 | conections_max = 5
  | ^^^^^^^^^^^^^^ not known in [limits]
  |
  = help: did you mean `connections_max`?
  = help: known in [limits]: connections_max, connections_per_address_max, head_bytes_max, target_bytes_max, fields_max, underscores_in_headers, body_bytes_max, requests_per_connection_max, pipelined_max, response_head_bytes_max, ranges_max, temporary_bytes_max
"#,
    );
}

#[test]
fn an_unknown_section() {
    refused(
        "[limit]\n\n[[site]]\nroot = \"www\"\n",
        r"
error: unknown key `limit`
 --> baton.toml:1:2
  |
1 | [limit]
  |  ^^^^^ not known here
  |
  = help: did you mean `limits`?
  = help: known here: include, server, limits, timeouts, send, cache, shared_cache, tls, acme, cluster, log, admin, media_types, site
",
    );
}

#[test]
fn every_mistake_is_reported_in_the_order_of_the_file() {
    refused(
        r#"[server]
architecture = "spedd"
processes = 0
user = "no such user"

[limits]
head_bytes_max = "12 parsecs"
fields_max = "many"

[[site]]
root = "ww"
listen = ["8080", "example.org:80"]
"#,
        r#"
error: `server.architecture` has an unknown word
 --> baton.toml:2:16
  |
2 | architecture = "spedd"
  |                ^^^^^^^ expected one of "auto", "sped", "amped", "symped", "shared-symped", "n-copy", "pipeline", "threads", "threads-cache", "mt", "mp"
  |
  = help: did you mean `sped`?

error: `server.processes` is out of range
 --> baton.toml:3:13
  |
3 | processes = 0
  |             ^ expected an integer from 1 to 1_024

error: `server.user` is not known
 --> baton.toml:4:8
  |
4 | user = "no such user"
  |        ^^^^^^^^^^^^^^ there is no user named "no such user" on this system

error: `limits.head_bytes_max` is not a size
 --> baton.toml:7:18
  |
7 | head_bytes_max = "12 parsecs"
  |                  ^^^^^^^^^^^^ expected a number and one of TiB, GiB, MiB, KiB, GB, MB, kB, B

error: `limits.fields_max` cannot be a string
 --> baton.toml:8:14
  |
8 | fields_max = "many"
  |              ^^^^^^ expected an integer from 1 to 256

error: `site.root` cannot be served
  --> baton.toml:11:8
   |
11 | root = "ww"
   |        ^^^^ DIR/ww: No such file or directory (os error 2)

error: `site.listen` has an address that cannot be listened on
  --> baton.toml:12:19
   |
12 | listen = ["8080", "example.org:80"]
   |                   ^^^^^^^^^^^^^^^^ `example.org` is not an IP address; names of hosts belong in `hosts`
   |
   = help: accepted: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "8080" (this host only), ":8080" (all interfaces) or "unix:/path"
"#,
    );
}

#[test]
fn two_sites_for_one_host() {
    refused(
        r#"[[site]]
root = "www"
hosts = ["example.org", "www.example.org"]

[[site]]
root = "www"
hosts = ["WWW.example.org"]
"#,
        r#"
error: two sites are `www.example.org` of 127.0.0.1:8080
 --> baton.toml:7:9
  |
3 | hosts = ["example.org", "www.example.org"]
  |         ---------------------------------- is asked first
...
7 | hosts = ["WWW.example.org"]
  |         ^^^^^^^^^^^^^^^^^^^ would never be asked
  |
  = help: give them different `hosts`, or different addresses in `listen`
"#,
    );
}

#[test]
fn two_defaults_of_one_address() {
    refused(
        "[[site]]\nroot = \"www\"\n\n[[site]]\nroot = \"www\"\nlisten = \"8080\"\n",
        r#"
error: two sites are the default of 127.0.0.1:8080
 --> baton.toml:6:10
  |
1 | [[site]]
  | -------- is asked first
...
6 | listen = "8080"
  |          ^^^^^^ would never be asked
  |
  = help: give them different `hosts`, or different addresses in `listen`
"#,
    );
}

#[test]
fn an_address_that_includes_another() {
    refused(
        r#"[[site]]
root = "www"
listen = "0.0.0.0:80"

[[site]]
root = "www"
listen = ["127.0.0.1:80", "127.0.0.1:81"]
"#,
        r#"
error: 0.0.0.0:80 includes 127.0.0.1:80: both cannot be listened on
 --> baton.toml:7:10
  |
3 | listen = "0.0.0.0:80"
  |          ------------ is part of this one
...
7 | listen = ["127.0.0.1:80", "127.0.0.1:81"]
  |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this address
  |
  = help: let both sites listen on the same address and distinguish them by `hosts`
"#,
    );
}

#[test]
fn routes() {
    refused(
        r#"[[site]]
root = "www"

[[site.route]]
path = "docs"

[[site.route]]
browse = true

[[site.route]]
path = "/old"
redirect = { to = "ftp://example.org", status = 200 }
browse = true

[[site.route]]
path = "/gone"
respond = { body = "gone" }
redirect = { to = "/new" }
"#,
        r#"
error: `site.route.path` does not begin with `/`
 --> baton.toml:5:8
  |
5 | path = "docs"
  |        ^^^^^^ expected "/docs"

error: `site.route.path` is missing
 --> baton.toml:7:1
  |
7 | [[site.route]]
  | ^^^^^^^^^^^^^^ must be given here

error: `site.route.redirect.to` is not a location
  --> baton.toml:12:19
   |
12 | redirect = { to = "ftp://example.org", status = 200 }
   |                   ^^^^^^^^^^^^^^^^^^^ expected `/…`, `http://…` or `https://…`

error: `site.route.redirect.status` is not accepted
  --> baton.toml:12:49
   |
12 | redirect = { to = "ftp://example.org", status = 200 }
   |                                                 ^^^ expected one of 301, 302, 303, 307, 308

error: a route has either `redirect` or `browse`
  --> baton.toml:13:10
   |
12 | redirect = { to = "ftp://example.org", status = 200 }
   |            ------------------------------------------ because of this
13 | browse = true
   |          ^^^^ without effect here

error: `site.route.respond.status` is missing
  --> baton.toml:17:11
   |
17 | respond = { body = "gone" }
   |           ^^^^^^^^^^^^^^^^^ must be given here

error: a route has either `respond` or `redirect`
  --> baton.toml:18:12
   |
17 | respond = { body = "gone" }
   |           ----------------- answers already
18 | redirect = { to = "/new" }
   |            ^^^^^^^^^^^^^^^ answers as well
"#,
    );
}

#[test]
fn two_routes_with_one_path() {
    refused(
        r#"[[site]]
root = "www"
route = [{ path = "/a", browse = true }, { path = "/a/", browse = false }]
"#,
        r#"
error: two routes have the path /a/
 --> baton.toml:3:51
  |
3 | route = [{ path = "/a", browse = true }, { path = "/a/", browse = false }]
  |                   ---- is asked first             ^^^^^ would never be asked
"#,
    );
}

#[test]
fn rules_for_response_fields() {
    refused(
        r#"[[site]]
root = "www"
headers = { add = "x", remove = ["X-One", "date", 1], default = { ETag = "x" }, set = { X-Two = 2 } }
"#,
        r#"
error: `site.headers` cannot be a string
 --> baton.toml:3:19
  |
3 | headers = { add = "x", remove = ["X-One", "date", 1], default = { ETag = "x" }, set = { X-Two = 2 } }
  |                   ^^^ expected a table of strings or arrays of strings: { NAME = "VALUE" }

error: `site.headers` sets a field that the server sets itself
 --> baton.toml:3:43
  |
3 | headers = { add = "x", remove = ["X-One", "date", 1], default = { ETag = "x" }, set = { X-Two = 2 } }
  |                                           ^^^^^^ it is always sent

error: `site.headers` cannot be an integer
 --> baton.toml:3:51
  |
3 | headers = { add = "x", remove = ["X-One", "date", 1], default = { ETag = "x" }, set = { X-Two = 2 } }
  |                                                   ^ expected a string

error: `site.headers` sets a field that the server sets itself
 --> baton.toml:3:67
  |
3 | headers = { add = "x", remove = ["X-One", "date", 1], default = { ETag = "x" }, set = { X-Two = 2 } }
  |                                                                   ^^^^ it follows from the content

error: `site.headers` cannot be an integer
 --> baton.toml:3:97
  |
3 | headers = { add = "x", remove = ["X-One", "date", 1], default = { ETag = "x" }, set = { X-Two = 2 } }
  |                                                                                                 ^ expected the value of a response field
"#,
    );
}

#[test]
fn response_fields() {
    refused(
        r#"[[site]]
root = "www"
headers = { X-One = "a\r\nSet-Cookie: b", "X Two" = "c", content-length = "5", X-Three = " d" }
cache_control = [{ match = "*.css" }, { match = "*", vale = "no-cache" }]
error_pages = { 404 = "404.html", 200 = "ok.html" }
"#,
        r#"
error: `site.headers` has control characters
 --> baton.toml:3:21
  |
3 | headers = { X-One = "a\r\nSet-Cookie: b", "X Two" = "c", content-length = "5", X-Three = " d" }
  |                     ^^^^^^^^^^^^^^^^^^^^ expected printable text on one line

error: `site.headers` has a bad field name
 --> baton.toml:3:43
  |
3 | headers = { X-One = "a\r\nSet-Cookie: b", "X Two" = "c", content-length = "5", X-Three = " d" }
  |                                           ^^^^^^^ expected letters, digits and hyphens

error: `site.headers` sets a field that the server sets itself
 --> baton.toml:3:58
  |
3 | headers = { X-One = "a\r\nSet-Cookie: b", "X Two" = "c", content-length = "5", X-Three = " d" }
  |                                                          ^^^^^^^^^^^^^^ it follows from the content

error: `site.headers` has a value that no field can have
 --> baton.toml:3:90
  |
3 | headers = { X-One = "a\r\nSet-Cookie: b", "X Two" = "c", content-length = "5", X-Three = " d" }
  |                                                                                          ^^^^ expected no blanks around it

error: `site.cache_control.value` is missing
 --> baton.toml:4:18
  |
4 | cache_control = [{ match = "*.css" }, { match = "*", vale = "no-cache" }]
  |                  ^^^^^^^^^^^^^^^^^^^ must be given here

error: `site.cache_control.value` is missing
 --> baton.toml:4:39
  |
4 | cache_control = [{ match = "*.css" }, { match = "*", vale = "no-cache" }]
  |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ must be given here

error: unknown key `vale`
 --> baton.toml:4:54
  |
4 | cache_control = [{ match = "*.css" }, { match = "*", vale = "no-cache" }]
  |                                                      ^^^^ not known in [site.cache_control]
  |
  = help: did you mean `value`?
  = help: known in [site.cache_control]: match, types, value

error: `site.error_pages` has a bad status
 --> baton.toml:5:35
  |
5 | error_pages = { 404 = "404.html", 200 = "ok.html" }
  |                                   ^^^ expected 400 to 599
"#,
    );
}

#[test]
fn an_error_page_that_is_not_there() {
    refused(
        "[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"404.html\" }\n",
        r#"
error: the page for status 404 cannot be read
 --> baton.toml:3:15
  |
3 | error_pages = { 404 = "404.html" }
  |               ^^^^^^^^^^^^^^^^^^^^ DIR/www/404.html: No such file or directory (os error 2)
"#,
    );
}

#[test]
fn a_site_that_serves_nothing() {
    refused(
        "[[site]]\nbrowse = true\n",
        r#"
error: a site that serves nothing
 --> baton.toml:1:1
  |
1 | [[site]]
  | ^^^^^^^^ has neither `root` nor a route
  |
  = help: add `root = "FOLDER"` or a [[site.route]]
"#,
    );
}

#[test]
fn no_site_at_all() {
    refused(
        "[server]\nprocesses = 2\n",
        r#"
error: there is no site
 |
 = help: add a [[site]] with `root = "FOLDER"`
"#,
    );
}

#[test]
fn a_root_that_is_a_file() {
    refused(
        "[[site]]\nroot = \"baton.toml\"\n",
        r#"
error: `site.root` cannot be served
 --> baton.toml:2:8
  |
2 | root = "baton.toml"
  |        ^^^^^^^^^^^^ DIR/baton.toml: not a directory
"#,
    );
}

#[test]
fn a_target_longer_than_its_head() {
    refused(
        "[limits]\nhead_bytes_max = 4096\n\n[[site]]\nroot = \"www\"\n",
        r#"
error: `limits.target_bytes_max` is larger than `limits.head_bytes_max`
 --> baton.toml:2:18
  |
1 | [limits]
  | -------- targets, a part of them, 8192
2 | head_bytes_max = 4096
  |                  ^^^^ heads have up to 4096 bytes
"#,
    );
}

#[test]
fn a_section_that_is_no_table() {
    refused(
        "cache = false\nsite = \"www\"\n",
        r#"
error: `cache` cannot be a boolean
 --> baton.toml:1:9
  |
1 | cache = false
  |         ^^^^^ expected a table: [cache]

error: `site` cannot be a string
 --> baton.toml:2:8
  |
2 | site = "www"
  |        ^^^^^ expected an array of tables: [[site]]
"#,
    );
}

#[test]
fn text_that_is_not_toml() {
    refused(
        "[server\nprocesses = \n\n[[site]]\nroot = www\n",
        r#"
error: this is not TOML
 --> baton.toml:1:8
  |
1 | [server
  |        ^ unclosed table, expected `]`

error: this is not TOML
 --> baton.toml:5:8
  |
5 | root = www
  |        ^^^ string values must be quoted, expected literal string
"#,
    );
}

#[test]
fn a_file_that_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    refused_in(
        dir.path(),
        &["run", "--config", "none.toml"],
        r#"
error: cannot read none.toml: No such file or directory (os error 2)
 |
 = help: `baton config --default` prints a configuration to start from
"#,
    );
}

#[test]
fn flags() {
    let dir = tempfile::tempdir().unwrap();
    refused_in(
        dir.path(),
        &[
            "serve",
            "ww",
            "--listen",
            "80x80",
            "-H",
            "Bad Name: x y",
            "--set",
            "cache.polcy=gds",
            "--workers=0",
        ],
        r#"
error: `site.root` cannot be served
 --> command line:1:13
  |
1 | baton serve ww --listen 80x80 --header 'Bad Name:x y' --workers 0 --set cache.polcy=gds
  |             ^^ DIR/ww: No such file or directory (os error 2)

error: `site.listen` has an address that cannot be listened on
 --> command line:1:25
  |
1 | baton serve ww --listen 80x80 --header 'Bad Name:x y' --workers 0 --set cache.polcy=gds
  |                         ^^^^^ `80x80` is not a port: expected 0 to 65535
  |
  = help: accepted: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "8080" (this host only), ":8080" (all interfaces) or "unix:/path"

error: `site.headers` has a bad field name
 --> command line:1:41
  |
1 | baton serve ww --listen 80x80 --header 'Bad Name:x y' --workers 0 --set cache.polcy=gds
  |                                         ^^^^^^^^^^^^ expected letters, digits and hyphens

error: `server.processes` is out of range
 --> command line:1:65
  |
1 | baton serve ww --listen 80x80 --header 'Bad Name:x y' --workers 0 --set cache.polcy=gds
  |                                                                 ^ expected an integer from 1 to 1_024

error: unknown key `polcy`
 --> command line:1:85
  |
1 | baton serve ww --listen 80x80 --header 'Bad Name:x y' --workers 0 --set cache.polcy=gds
  |                                                                                     ^^^ not known in [cache]
  |
  = help: did you mean `policy`?
  = help: known in [cache]: names_max, files_max, memory_bytes_max, memory_file_bytes_max, memory_hot_file_bytes_max, names, heads, files, revalidate_ms, policy
"#,
    );
}

#[test]
fn applications_that_cannot_be() {
    let route = |settings: &str| {
        format!("[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\nfastcgi = {settings}\n")
    };
    refused(
        &route("{ to = \"/run/a.sock\" }"),
        r#"
error: `site.route.fastcgi.to` has an address that no application can have
 --> baton.toml:5:18
  |
5 | fastcgi = { to = "/run/a.sock" }
  |                  ^^^^^^^^^^^^^ a Unix socket is written `unix:/run/a.sock`
  |
  = help: accepted: "unix:/path", "127.0.0.1:9000", "[::1]:9000" or "host:9000"
"#,
    );
    refused(
        &route("{ to = \"unix:a\", transport = \"passfdd\" }"),
        r#"
error: `site.route.fastcgi.transport` has an unknown word
 --> baton.toml:5:40
  |
5 | fastcgi = { to = "unix:a", transport = "passfdd" }
  |                                        ^^^^^^^^^ expected one of "auto", "unix", "inet", "shm", "passfd"
  |
  = help: did you mean `passfd`?
"#,
    );
    refused(
        &route(
            "{ to = \"unix:a\", scripts = [\"php\"], params = { HTTP_X = \"1\", CONTENT_LENGTH = 2, BATON_X = \"\" } }",
        ),
        r#"
error: `site.route.fastcgi.scripts` is not the ending of a name
 --> baton.toml:5:39
  |
5 | fastcgi = { to = "unix:a", scripts = ["php"], params = { HTTP_X = "1", CONTENT_LENGTH = 2, BATON_X = "" } }
  |                                       ^^^^^ expected something like ".php"

error: `site.route.fastcgi.params` sets a parameter that only the server may set
 --> baton.toml:5:72
  |
5 | fastcgi = { to = "unix:a", scripts = ["php"], params = { HTTP_X = "1", CONTENT_LENGTH = 2, BATON_X = "" } }
  |                                                                        ^^^^^^^^^^^^^^ it follows from the body that the client sends

error: `site.route.fastcgi.params` cannot be an integer
 --> baton.toml:5:89
  |
5 | fastcgi = { to = "unix:a", scripts = ["php"], params = { HTTP_X = "1", CONTENT_LENGTH = 2, BATON_X = "" } }
  |                                                                                         ^ expected a string

error: `site.route.fastcgi.params` sets a parameter that only the server may set
 --> baton.toml:5:92
  |
5 | fastcgi = { to = "unix:a", scripts = ["php"], params = { HTTP_X = "1", CONTENT_LENGTH = 2, BATON_X = "" } }
  |                                                                                            ^^^^^^^ names that begin with `BATON_` belong to the hand-over protocol
"#,
    );
}

#[test]
fn an_application_that_is_nowhere_or_in_two_places() {
    refused(
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\nfastcgi = { processes = 2 }\n[[site.route]]\npath = \"/b\"\nfastcgi = { to = \"unix:/b\", command = [\"sh\"] }\n",
        r#"
error: an application that is nowhere
 --> baton.toml:5:11
  |
5 | fastcgi = { processes = 2 }
  |           ^^^^^^^^^^^^^^^^^ has neither `to` nor `command`
  |
  = help: give its address, or the command that starts it

error: an application has either `to` or `command`
 --> baton.toml:8:11
  |
8 | fastcgi = { to = "unix:/b", command = ["sh"] }
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ has both
"#,
    );
}

#[test]
fn how_many_processes() {
    let route = |path: &str, processes: &str| {
        format!(
            "[[site.route]]\npath = \"{path}\"\nfastcgi = {{ command = [\"sh\"], processes = {processes} }}\n"
        )
    };
    let text = format!(
        "[[site]]\nroot = \"www\"\n{}{}{}{}",
        route("/a", "{ min = 3, max = 2 }"),
        route("/b", "{ max = 2 }"),
        route("/c", "{ min = 1, max = 2, often = 3 }"),
        route("/d", "\"many\""),
    );
    refused(
        &text,
        r#"
error: `site.route.fastcgi.processes` has a min above its max
 --> baton.toml:5:43
  |
5 | fastcgi = { command = ["sh"], processes = { min = 3, max = 2 } }
  |                                           ^^^^^^^^^^^^^^^^^^^^ 3 is more than 2

error: `site.route.fastcgi.processes` needs both a min and a max
 --> baton.toml:8:43
  |
8 | fastcgi = { command = ["sh"], processes = { max = 2 } }
  |                                           ^^^^^^^^^^^ expected an integer from 1 to 4_096 or { min = 2, max = 16, idle_s = 10 }

error: `site.route.fastcgi.processes` has a key that it cannot have
  --> baton.toml:11:63
   |
11 | fastcgi = { command = ["sh"], processes = { min = 1, max = 2, often = 3 } }
   |                                                               ^^^^^ expected min, max or idle_s

error: `site.route.fastcgi.processes` cannot be a string
  --> baton.toml:14:43
   |
14 | fastcgi = { command = ["sh"], processes = "many" }
   |                                           ^^^^^^ expected an integer from 1 to 4_096 or { min = 2, max = 16, idle_s = 10 }
"#,
    );
}

#[test]
fn a_command_that_cannot_be_run() {
    refused(
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\nfastcgi = { command = [\"./app\"] }\n[[site.route]]\npath = \"/b\"\nfastcgi = { command = [\"no-such-program\"] }\n",
        r#"
error: `site.route.fastcgi.command` names a program that cannot be run
 --> baton.toml:5:24
  |
5 | fastcgi = { command = ["./app"] }
  |                        ^^^^^^^ DIR/app: No such file or directory (os error 2)

error: `site.route.fastcgi.command` names a program that cannot be run
 --> baton.toml:8:24
  |
8 | fastcgi = { command = ["no-such-program"] }
  |                        ^^^^^^^^^^^^^^^^^ it is in none of the folders of PATH
"#,
    );
}

#[test]
fn programs_without_names() {
    refused(
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\ncgi = { processes = 2 }\n",
        r#"
error: programs without names
 --> baton.toml:5:7
  |
5 | cgi = { processes = 2 }
  |       ^^^^^^^^^^^^^^^^^ has no `scripts`
  |
  = help: say which files are run: `scripts = [".cgi"]`
"#,
    );
}

/// Goal: a flag of several parts is shown as it was given, and the mistake where it is.
#[test]
fn a_mistake_within_a_flag_of_several_parts() {
    let dir = tempfile::tempdir().unwrap();
    refused_in(
        dir.path(),
        &[
            "serve",
            "www",
            "--fastcgi",
            "/app=unix:/run/app.sock,queue_max=5,transport=pasfd",
            "--error-page=4=a.html",
        ],
        r#"
error: `site.error_pages` has a bad status
 --> command line:1:30
  |
1 | baton serve www --error-page 4=a.html --fastcgi /app=unix:/run/app.sock,queue_max=5,transport=pasfd
  |                              ^^^^^^^^ expected 400 to 599

error: `site.route.fastcgi.transport` has an unknown word
 --> command line:1:95
  |
1 | baton serve www --error-page 4=a.html --fastcgi /app=unix:/run/app.sock,queue_max=5,transport=pasfd
  |                                                                                               ^^^^^ expected one of "auto", "unix", "inet", "shm", "passfd"
  |
  = help: did you mean `passfd`?
"#,
    );
}

#[test]
fn policies_of_a_cached_route() {
    refused(
        "[[site]]\n[[site.route]]\npath = \"/a\"\nproxy = \"http://a\"\ncache = { policy = \"lfu\", segments = \"uniform:0\" }\n",
        r#"
error: `site.route.cache.policy` has an unknown word
 --> baton.toml:5:20
  |
5 | cache = { policy = "lfu", segments = "uniform:0" }
  |                    ^^^^^ expected one of "lru", "gds", "s3-fifo", "wu", "reach"
  |
  = help: did you mean `lru`?

error: `site.route.cache.segments` is no grouping of blocks
 --> baton.toml:5:38
  |
5 | cache = { policy = "lfu", segments = "uniform:0" }
  |                                      ^^^^^^^^^^^ expected "uniform:BLOCKS" (1 to 65536), "exponential" or "pyramid"
"#,
    );
}
