//! Pages that could read too much, or nothing.

use crate::refused;

#[test]
fn origins_that_are_none_and_credentials_for_all() {
    refused(
        r#"[[site]]
root = "www"
cors = { origins = "*", credentials = true }

[[site.route]]
path = "/a"
respond = { status = 200 }
cors = ["https://app.example/", "app.example", "https://*app.example", "*"]

[[site.route]]
path = "/b"
respond = { status = 200 }
cors = { origins = ["null"], credentials = true }

[[site.route]]
path = "/c"
respond = { status = 200 }
cors = ["https://app.example/", "app.example", "https://*app.example"]

[[site.route]]
path = "/d"
respond = { status = 200 }
cors = "https://app.example"
headers = { Access-Control-Allow-Origin = "*" }

[[site.route]]
path = "/e"
respond = { status = 200 }
cors = { methods = ["get"], headers = ["*"] }

[[site.route]]
path = "/f"
respond = { status = 200 }
cors = []
"#,
        r#"
error: `site.cors` gives credentials to any page
 --> baton.toml:3:39
  |
3 | cors = { origins = "*", credentials = true }
  |                                       ^^^^ every site could read what the user sees here
  |
  = help: list the origins whose pages are yours, or remove `credentials`

error: `site.route.cors` allows all origins, and some
 --> baton.toml:8:8
  |
8 | cors = ["https://app.example/", "app.example", "https://*app.example", "*"]
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ with `*`, the others have no effect

error: `site.route.cors` gives credentials to any page
  --> baton.toml:13:44
   |
13 | cors = { origins = ["null"], credentials = true }
   |                                            ^^^^ any site can make a page whose origin is `null`, and read what the user sees here
   |
   = help: list the origins whose pages are yours, or remove `credentials`

error: `site.route.cors` has a bad origin
  --> baton.toml:18:9
   |
18 | cors = ["https://app.example/", "app.example", "https://*app.example"]
   |         ^^^^^^^^^^^^^^^^^^^^^^ an origin ends behind its host or port: it has no path, not even `/`

error: `site.route.cors` has a bad origin
  --> baton.toml:18:33
   |
18 | cors = ["https://app.example/", "app.example", "https://*app.example"]
   |                                 ^^^^^^^^^^^^^ expected a scheme in front, as in "https://app.example"

error: `site.route.cors` has a bad origin
  --> baton.toml:18:48
   |
18 | cors = ["https://app.example/", "app.example", "https://*app.example"]
   |                                                ^^^^^^^^^^^^^^^^^^^^^^ expected a host in ASCII; `*.` may stand in place of its first labels, as in "https://*.example.com"

error: `cors` and `headers` both write Access-Control-Allow-Origin
  --> baton.toml:24:11
   |
23 | cors = "https://app.example"
   |        --------------------- writes it as well
24 | headers = { Access-Control-Allow-Origin = "*" }
   |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ writes it
   |
   = help: remove the field from `headers`

error: `site.route.cors.origins` is missing
  --> baton.toml:29:8
   |
29 | cors = { methods = ["get"], headers = ["*"] }
   |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ must be given here

error: `site.route.cors.methods` has no method
  --> baton.toml:29:21
   |
29 | cors = { methods = ["get"], headers = ["*"] }
   |                     ^^^^^ no request has this method
   |
   = help: methods are case-sensitive: did you mean `GET`?

error: `site.route.cors.headers` has a bad field name
  --> baton.toml:29:40
   |
29 | cors = { methods = ["get"], headers = ["*"] }
   |                                        ^^^ expected letters, digits and hyphens

error: `site.route.cors` allows no origin
  --> baton.toml:34:8
   |
34 | cors = []
   |        ^^ is empty
   |
   = help: name origins, or write `cors = "off"`
"#,
    );
}
