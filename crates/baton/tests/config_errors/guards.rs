//! Rules about clients that would do nothing, or the opposite of what is meant.

use crate::refused;

#[test]
fn rules_without_effect() {
    refused(
        r#"[[site]]
root = "www"
allow = ["10.0.0.0/8", "::1", "10.1.0.0/16"]
deny = ["192.0.2.0/24", "::1"]

[[site.route]]
path = "/a"
respond = { status = 200 }
allow = []

[[site.route]]
path = "/b"
respond = { status = 200 }
methods = ["get", "POST"]

[[site.route]]
path = "/c"
respond = { status = 200 }
methods = ["GET", "POST"]
deny = ["10.0.0.0/33", "localhost"]
"#,
        r#"
error: 10.1.0.0/16 in `allow` has no effect
 --> baton.toml:3:9
  |
3 | allow = ["10.0.0.0/8", "::1", "10.1.0.0/16"]
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 10.0.0.0/8 holds it already
  |
  = help: remove it

error: ::1 is allowed and denied
 --> baton.toml:3:9
  |
3 | allow = ["10.0.0.0/8", "::1", "10.1.0.0/16"]
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `deny` has ::1, which has precedence
  |
  = help: remove it from one of the lists

error: 192.0.2.0/24 in `deny` has no effect
 --> baton.toml:4:8
  |
4 | deny = ["192.0.2.0/24", "::1"]
  |        ^^^^^^^^^^^^^^^^^^^^^^^ `allow` does not let it in
  |
  = help: remove it

error: `allow` lets no client in
 --> baton.toml:9:9
  |
9 | allow = []
  |         ^^ is empty
  |
  = help: name clients, write `allow = "all"`, or use `respond = { status = 403 }`

error: `site.route.methods` has no method
  --> baton.toml:14:12
   |
14 | methods = ["get", "POST"]
   |            ^^^^^ no request has this method
   |
   = help: methods are case-sensitive: did you mean `GET`?

error: no request with POST is answered here
  --> baton.toml:19:11
   |
19 | methods = ["GET", "POST"]
   |           ^^^^^^^^^^^^^^^ files and fixed answers below 400 know GET, HEAD and OPTIONS
   |
   = help: remove `POST`, or add what answers it: an application or `proxy`

error: `site.route.deny` has a bad address
  --> baton.toml:20:9
   |
20 | deny = ["10.0.0.0/33", "localhost"]
   |         ^^^^^^^^^^^^^ behind `/` goes the number of bits that count: 0 to 32, or 128

error: `site.route.deny` has a bad address
  --> baton.toml:20:24
   |
20 | deny = ["10.0.0.0/33", "localhost"]
   |                        ^^^^^^^^^^^ it is not an IP address
"#,
    );
}

#[test]
fn balancers_of_one_address() {
    refused(
        r#"[[site]]
root = "www"
hosts = ["a"]
proxy_protocol = { from = ["10.0.0.1"] }

[[site]]
root = "www"
hosts = ["b"]
real_ip = { from = ["10.0.0.1"], header = "Forwarded" }

[[site]]
root = "www"
hosts = ["c"]
proxy_protocol = { from = [] }
"#,
        r#"
error: two sites differ in the load balancers of 127.0.0.1:8080
 --> baton.toml:6:1
  |
4 | proxy_protocol = { from = ["10.0.0.1"] }
  |                  ----------------------- differs from this one
5 |
6 | [[site]]
  | ^^^^^^^^ this one
  |
  = help: give both the same `proxy_protocol`, or different addresses

error: `site.real_ip.header` is not read
 --> baton.toml:9:43
  |
9 | real_ip = { from = ["10.0.0.1"], header = "Forwarded" }
  |                                           ^^^^^^^^^^^ expected a field that is a list of addresses, such as "X-Forwarded-For"

error: `site.proxy_protocol.from` is empty
  --> baton.toml:14:27
   |
14 | proxy_protocol = { from = [] }
   |                           ^^ expected at least one address
"#,
    );
}

/// A choice between an address and a password needs both; a route takes what it lacks from its site.
#[test]
fn a_choice_of_one() {
    refused(
        r#"[[site]]
root = "www"
allow = ["10.0.0.0/8"]

[[site.route]]
path = "/a"
satisfy = "any"

[[site.route]]
path = "/b"
allow = "all"
basic_auth = { users = { ada = "$2y$04$Vn0ZbcLMWXmVyLcJpGJxdO9vzN7nkGoMVkaqhqe960XkJvGM441Km" } }
satisfy = "any"

[[site.route]]
path = "/c"
basic_auth = { users = { ada = "$2y$04$Vn0ZbcLMWXmVyLcJpGJxdO9vzN7nkGoMVkaqhqe960XkJvGM441Km" } }
satisfy = "any"
"#,
        r#"
error: `satisfy` has nothing to choose from
 --> baton.toml:7:11
  |
7 | satisfy = "any"
  |           ^^^^^ there is no `basic_auth` here
  |
  = help: write it where addresses and a password guard the same place

error: `satisfy` has nothing to choose from
  --> baton.toml:13:11
   |
13 | satisfy = "any"
   |           ^^^^^ `allow` names no address here
   |
   = help: write it where addresses and a password guard the same place
"#,
    );
}
