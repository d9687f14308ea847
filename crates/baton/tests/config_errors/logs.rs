//! Logs and ids of requests that cannot be as they were asked for.

use crate::refused;

#[test]
fn a_field_that_is_named_twice() {
    refused(
        "[log]\nfields = [\"time\", \"status\", \"time\"]\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.fields` names a field twice
 --> baton.toml:2:29
  |
2 | fields = ["time", "status", "time"]
  |                             ^^^^^^ "time" is in front already
"#,
    );
}

#[test]
fn a_field_of_other_servers() {
    refused(
        "[log]\nfields = [\"duration_ms\"]\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.fields` has an unknown word
 --> baton.toml:2:11
  |
2 | fields = ["duration_ms"]
  |           ^^^^^^^^^^^^^ expected one of "time", "time_common", "peer", "user", "site", "host", "request", "method", "target", "protocol", "status", "body_bytes", "duration_us", "first_byte_us", "upstream_us", "outcome", "cache", "transport", "origin", "request_id", "trace_id", "referer", "user_agent"
  |
  = help: did you mean `duration_us`?
"#,
    );
}

#[test]
fn two_sites_with_one_log() {
    refused(
        "[[site]]\nroot = \"www\"\naccess_log = \"one.log\"\n[[site]]\nhosts = [\"b.example\"]\nroot = \"www\"\naccess_log = { file = \"one.log\", format = \"json\" }\n",
        r#"
error: two sites write different lines to DIR/one.log
 --> baton.toml:7:14
  |
3 | access_log = "one.log"
  |              --------- and this one
...
7 | access_log = { file = "one.log", format = "json" }
  |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this one
  |
  = help: give them different files, or the same `format` and `fields`
"#,
    );
}

#[test]
fn a_site_with_the_log_of_the_server() {
    refused(
        "[log]\naccess = \"one.log\"\n[[site]]\nroot = \"www\"\naccess_log = \"one.log\"\n",
        r#"
error: DIR/one.log is the access log of the server
 --> baton.toml:5:14
  |
2 | access = "one.log"
  |          --------- here
...
5 | access_log = "one.log"
  |              ^^^^^^^^^ would be opened once more
  |
  = help: write `access_log = true`, or choose another file
"#,
    );
}

#[test]
fn a_log_without_a_file() {
    refused(
        "[[site]]\nroot = \"www\"\naccess_log = { format = \"json\" }\n",
        r#"
error: `site.access_log.file` is missing
 --> baton.toml:3:14
  |
3 | access_log = { format = "json" }
  |              ^^^^^^^^^^^^^^^^^^^ must be given here
"#,
    );
}

#[test]
fn an_id_in_a_field_with_another_meaning() {
    refused(
        "[[site]]\nroot = \"www\"\nrequest_id = { header = \"Content-Length\", trust = [\"10.0.0.0/40\"] }\n",
        r#"
error: `site.request_id.header` is no field that can have an id
 --> baton.toml:3:25
  |
3 | request_id = { header = "Content-Length", trust = ["10.0.0.0/40"] }
  |                         ^^^^^^^^^^^^^^^^ expected a name such as X-Request-Id, with another meaning in neither HTTP nor this server

error: `site.request_id.trust` has a bad address
 --> baton.toml:3:52
  |
3 | request_id = { header = "Content-Length", trust = ["10.0.0.0/40"] }
  |                                                    ^^^^^^^^^^^^^ behind `/` goes the number of bits that count: 0 to 32, or 128
"#,
    );
}

#[test]
fn words_in_the_place_of_flags() {
    refused(
        "[[site]]\nroot = \"www\"\nrequest_id = \"yes\"\ntraceparent = 1\n",
        r#"
error: `site.request_id` cannot be a string
 --> baton.toml:3:14
  |
3 | request_id = "yes"
  |              ^^^^^ expected true or false, or { header = …, trust = … }

error: `site.traceparent` cannot be an integer
 --> baton.toml:4:15
  |
4 | traceparent = 1
  |               ^ expected true or false
"#,
    );
}

#[test]
fn fields_of_requests_that_no_log_says() {
    refused(
        r#"[log]
fields = ["time", "request_header.cookie", "request_header.a b"]

[[site]]
root = "www"
access_log = { file = "/log", fields = ["request_header.X-A", "request_header.x-a"] }
"#,
        r#"
error: `log.fields` would write secrets into the log
 --> baton.toml:2:19
  |
2 | fields = ["time", "request_header.cookie", "request_header.a b"]
  |                   ^^^^^^^^^^^^^^^^^^^^^^^ with these, a reader of the log could act as the client
  |
  = help: remove it; `user` is the user whose password was right

error: `log.fields` has a bad field name
 --> baton.toml:2:44
  |
2 | fields = ["time", "request_header.cookie", "request_header.a b"]
  |                                            ^^^^^^^^^^^^^^^^^^^^ expected letters, digits and hyphens

error: `site.access_log.fields` names a field twice
 --> baton.toml:6:63
  |
6 | access_log = { file = "/log", fields = ["request_header.X-A", "request_header.x-a"] }
  |                                                               ^^^^^^^^^^^^^^^^^^^^ "request_header.x-a" is in front already
"#,
    );
}

#[test]
fn a_format_with_a_variable_of_nginx() {
    refused(
        "[log]\nformat = \"$remote_addr $status\"\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.format` has a variable that no field has
 --> baton.toml:2:10
  |
2 | format = "$remote_addr $status"
  |          ^^^^^^^^^^^^^^^^^^^^^^ `$remote_addr`: expected time, time_common, peer, user, site, host, request, method, target, protocol, status, body_bytes, duration_us, first_byte_us, upstream_us, outcome, cache, transport, origin, request_id, trace_id, referer, user_agent, or `${request_header.NAME}`
  |
  = help: nginx's `$remote_addr` is `$peer` here
"#,
    );
}

#[test]
fn a_format_with_a_lone_dollar() {
    refused(
        "[[site]]\nroot = \"www\"\naccess_log = { file = \"a\", format = \"$status $ {\" }\n",
        r#"
error: `site.access_log.format` has a `$` without the name of a field
 --> baton.toml:3:37
  |
3 | access_log = { file = "a", format = "$status $ {" }
  |                                     ^^^^^^^^^^^^^ expected `$name` or `${name}`
  |
  = help: a dollar itself is `$$`
"#,
    );
}

#[test]
fn a_format_that_would_write_secrets() {
    refused(
        "[log]\nformat = \"${response_header.set-cookie}\"\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.format` would write secrets into the log
 --> baton.toml:2:10
  |
2 | format = "${response_header.set-cookie}"
  |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ with these, a reader of the log could act as the client
  |
  = help: remove it; `user` is the user whose password was right
"#,
    );
}

#[test]
fn fields_beside_a_format_that_has_its_own() {
    refused(
        "[log]\nformat = \"$status\"\nfields = [\"time\"]\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.fields` has no place in a format with variables
 --> baton.toml:3:10
  |
2 | format = "$status"
  |          --------- not in this text
3 | fields = ["time"]
  |          ^^^^^^^^ these fields
  |
  = help: write them into the text as `$name`, or use `format = "json"`
"#,
    );
}

#[test]
fn an_error_log_at_a_syslog_daemon() {
    refused(
        "[log]\nerror = \"syslog\"\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.error` cannot be a syslog daemon
 --> baton.toml:2:9
  |
2 | error = "syslog"
  |         ^^^^^^^^ expected "stdout", "stderr" or a path
  |
  = help: leave "stderr": systemd passes it to the journal and to syslog, and so does `baton run 2>&1 | logger -t baton`
"#,
    );
}

#[test]
fn a_syslog_daemon_that_is_nowhere() {
    refused(
        "[log]\naccess = \"syslog://logs.example/a\"\n[[site]]\nroot = \"www\"\n",
        r#"
error: `log.access` names no syslog daemon
 --> baton.toml:2:10
  |
2 | access = "syslog://logs.example/a"
  |          ^^^^^^^^^^^^^^^^^^^^^^^^^ expected "syslog", "syslog:/PATH" or "syslog://HOST:514"
"#,
    );
}
