//! Settings of compression that would do nothing, or harm.

use crate::refused;

#[test]
fn compression_without_effect() {
    refused(
        r#"[[site]]
root = "www"
compress = { types = ["text/*", "image/png"], codings = [] }

[[site.route]]
path = "/a"
compress = { types = ["html", "a/b/c"], min_bytes = 5000, max_bytes = 4000 }

[[site.route]]
path = "/b"
compress = true
respond = { status = 200 }

[[site.route]]
path = "/c"
compress = "gzip"
"#,
        r#"
error: `compress` compresses nothing
 --> baton.toml:3:12
  |
3 | compress = { types = ["text/*", "image/png"], codings = [] }
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ has no `codings`
  |
  = help: write `compress = false` to compress nothing

error: "image/png" is compressed in itself
 --> baton.toml:3:12
  |
3 | compress = { types = ["text/*", "image/png"], codings = [] }
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ would compress it again, for nothing
  |
  = help: remove it from `types`

error: `site.route.compress.types` is no media type
 --> baton.toml:7:23
  |
7 | compress = { types = ["html", "a/b/c"], min_bytes = 5000, max_bytes = 4000 }
  |                       ^^^^^^ expected one such as "text/html", with at most one `*`

error: `site.route.compress.types` is no media type
 --> baton.toml:7:31
  |
7 | compress = { types = ["html", "a/b/c"], min_bytes = 5000, max_bytes = 4000 }
  |                               ^^^^^^^ expected one such as "text/html", with at most one `*`

error: a route has either `respond` or `compress`
  --> baton.toml:11:12
   |
11 | compress = true
   |            ^^^^ without effect here
12 | respond = { status = 200 }
   |           ---------------- because of this

error: `site.route.compress` cannot be a string
  --> baton.toml:16:12
   |
16 | compress = "gzip"
   |            ^^^^^^ expected true or false, or { codings = …, types = …, min_bytes = …, max_bytes = … }
"#,
    );
}
