//! Passwords that are not protected, and limits that count nothing.

use crate::refused;

#[test]
fn hashes_that_protect_nothing() {
    refused(
        r#"[[site]]
root = "www"
basic_auth = { users = { ada = "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", bob = "secret" } }

[[site.route]]
path = "/a"
respond = { status = 200 }
basic_auth = { realm = "a \"b\"", users = { "a:b" = "$2y$12$short" } }

[[site.route]]
path = "/b"
respond = { status = 200 }
basic_auth = {}

[[site.route]]
path = "/c"
respond = { status = 200 }
basic_auth = "off"
rate_limit = { requests = 0, key = "user" }

[[site.route]]
path = "/d"
respond = { status = 200 }
rate_limit = { requests = 1, key = "adress" }

[[site.route]]
path = "/e"
respond = { status = 200 }
basic_auth = "off"
rate_limit = { requests = 1, key = "user" }
"#,
        r#"
error: the password of ada is not protected
 --> baton.toml:3:32
  |
3 | basic_auth = { users = { ada = "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", bob = "secret" } }
  |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ SHA-1 is no protection: a computer tries billions of passwords a second
  |
  = help: `baton hash-password ada` asks for the password and prints the line

error: the password of bob is not protected
 --> baton.toml:3:75
  |
3 | basic_auth = { users = { ada = "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", bob = "secret" } }
  |                                                                           ^^^^^^^^ this is no hash of bcrypt or argon2; is it the password itself?
  |
  = help: `baton hash-password bob` asks for the password and prints the line

error: `site.route.basic_auth.realm` has other characters than it may have
 --> baton.toml:8:24
  |
8 | basic_auth = { realm = "a \"b\"", users = { "a:b" = "$2y$12$short" } }
  |                        ^^^^^^^^^ expected ASCII without quotes and backslashes

error: `site.route.basic_auth.users` has a bad name
 --> baton.toml:8:45
  |
8 | basic_auth = { realm = "a \"b\"", users = { "a:b" = "$2y$12$short" } }
  |                                             ^^^^^ a name is not empty and has no colon

error: the password of a:b is not protected
 --> baton.toml:8:53
  |
8 | basic_auth = { realm = "a \"b\"", users = { "a:b" = "$2y$12$short" } }
  |                                                     ^^^^^^^^^^^^^^ the hash is not complete
  |
  = help: `baton hash-password a:b` asks for the password and prints the line

error: `site.route.basic_auth` lets no user in
  --> baton.toml:13:14
   |
13 | basic_auth = {}
   |              ^^ has neither `users` nor `file`
   |
   = help: add a user: `baton hash-password NAME` prints the line

error: `site.route.rate_limit.requests` is out of range
  --> baton.toml:19:27
   |
19 | rate_limit = { requests = 0, key = "user" }
   |                           ^ expected an integer from 1 to 1_000_000

error: `site.route.rate_limit.key` is no key
  --> baton.toml:24:36
   |
24 | rate_limit = { requests = 1, key = "adress" }
   |                                    ^^^^^^^^ expected "address", "user" or "header:NAME"
   |
   = help: did you mean `address`?

error: `rate_limit` counts by user, and no user is known
  --> baton.toml:30:14
   |
30 | rate_limit = { requests = 1, key = "user" }
   |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ there is no `basic_auth` here
   |
   = help: add `basic_auth`, or count by `address`
"#,
    );
}
