//! Mistakes about TLS.

use super::refused;

#[test]
fn certificates_and_addresses_belong_together() {
    refused(
        r#"[[site]]
root = "www"
hosts = ["a"]
listen = ":443 tls"

[[site]]
root = "www"
hosts = ["b"]
tls = { certificate = "b.pem" }

[[site]]
root = "www"
hosts = ["c"]
listen = [":443"]
"#,
        r#"
error: a site with TLS and without a certificate
 --> baton.toml:4:10
  |
4 | listen = ":443 tls"
  |          ^^^^^^^^^^ listens on 0.0.0.0:443 tls
  |
  = help: add `tls = { certificate = "CHAIN.pem", key = "KEY.pem" }` to the site, `tls = "acme"`, or `tls = "local"` for development

error: a certificate that no client gets
 --> baton.toml:9:7
  |
6 | [[site]]
  | -------- no address ends in ` tls`
...
9 | tls = { certificate = "b.pem" }
  |       ^^^^^^^^^^^^^^^^^^^^^^^^^ is for TLS
  |
  = help: write ` tls` behind an address: `listen = [":80", ":443 tls"]`

error: 0.0.0.0:443 is used with TLS and without
  --> baton.toml:14:10
   |
 4 | listen = ":443 tls"
   |          ---------- with TLS
...
14 | listen = [":443"]
   |          ^^^^^^^^ without TLS
   |
   = help: write ` tls` behind the address everywhere, or nowhere
"#,
    );
}

#[test]
fn what_holds_for_tls_only() {
    refused(
        r#"[[site]]
root = "www"
listen = ["80", "443 tls"]
tls = { certificate = "a.pem" }
client_certificates = { authorities = "ca.pem" }
hsts = true

[[site]]
root = "www"
listen = "8443 tls"
tls = { certificate = "a.pem" }
redirect_https = true
hsts = "includeSubDomains"

[[site]]
root = "www"
listen = "81"
redirect_https = 443
"#,
        r#"
error: `site.client_certificates` in a site that answers without TLS
 --> baton.toml:5:23
  |
3 | listen = ["80", "443 tls"]
  |          ----------------- has an address without TLS
4 | tls = { certificate = "a.pem" }
5 | client_certificates = { authorities = "ca.pem" }
  |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^ clients show none there
  |
  = help: add `redirect_https = true`, or write ` tls` behind every address

error: `site.hsts` in a site that answers without TLS
 --> baton.toml:6:8
  |
3 | listen = ["80", "443 tls"]
  |          ----------------- has an address without TLS
...
6 | hsts = true
  |        ^^^^ browsers ignore it there (RFC 6797, 8.1)
  |
  = help: add `redirect_https = true`, or write ` tls` behind every address

error: `site.hsts` has no age
  --> baton.toml:13:8
   |
13 | hsts = "includeSubDomains"
   |        ^^^^^^^^^^^^^^^^^^^ expected `max-age=SECONDS`, perhaps with `; includeSubDomains`

error: `site.redirect_https` has no effect
  --> baton.toml:18:18
   |
17 | listen = "81"
   |          ---- the addresses
18 | redirect_https = 443
   |                  ^^^ no address has TLS
   |
   = help: such as `listen = [":80", ":443 tls"]`
"#,
    );
}

#[test]
fn words_of_other_servers_and_kinds_that_do_not_fit() {
    refused(
        r#"[admin]
listen = "9000 tls"

[tls]
protocols = ["http/1.2"]

[[site]]
root = "www"
listen = "443 ssl"
tls = "a.pem"
client_certificates = { mode = "requires" }
redirect_https = 70000
"#,
        r#"
error: `admin.listen` has an address with TLS
 --> baton.toml:2:10
  |
2 | listen = "9000 tls"
  |          ^^^^^^^^^^ only sites speak TLS

error: `tls.protocols` has an unknown word
 --> baton.toml:5:14
  |
5 | protocols = ["http/1.2"]
  |              ^^^^^^^^^^ expected one of "h2", "http/1.1"
  |
  = help: did you mean `http/1.1`?

error: `site.listen` has an address that cannot be listened on
 --> baton.toml:9:10
  |
9 | listen = "443 ssl"
  |          ^^^^^^^^^ `443 ssl` is not a port: expected 0 to 65535
  |
  = help: accepted: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "8080" (this host only), ":8080" (all interfaces) or "unix:/path"
  = help: did you mean `443 tls`?

error: `site.tls` cannot be a string
  --> baton.toml:10:7
   |
10 | tls = "a.pem"
   |       ^^^^^^^ expected "off", "acme", "local", { certificate = …, key = … } or an array of such tables

error: `site.client_certificates.authorities` is missing
  --> baton.toml:11:23
   |
11 | client_certificates = { mode = "requires" }
   |                       ^^^^^^^^^^^^^^^^^^^^^ must be given here

error: `site.client_certificates.mode` has an unknown word
  --> baton.toml:11:32
   |
11 | client_certificates = { mode = "requires" }
   |                                ^^^^^^^^^^ expected one of "request", "require"
   |
   = help: did you mean `require`?

error: `site.redirect_https` is out of range
  --> baton.toml:12:18
   |
12 | redirect_https = 70000
   |                  ^^^^^ expected an integer from 1 to 65_535
"#,
    );
}

#[test]
fn an_authority_needs_names_that_it_can_check() {
    refused(
        r#"[acme]
directory = "http://ca.example/directory"
challenges = ["http-1"]

[[site]]
root = "www"
listen = ":443 tls"
tls = "acme"

[[site]]
root = "www"
listen = ":443 tls"
hosts = ["example.org", "*.example.org"]
tls = "acme"
"#,
        r#"
error: `acme.directory` has no directory
 --> baton.toml:2:13
  |
2 | directory = "http://ca.example/directory"
  |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ expected "letsencrypt", "staging" or a URL that begins with `https://`

error: `acme.challenges` has an unknown word
 --> baton.toml:3:15
  |
3 | challenges = ["http-1"]
  |               ^^^^^^^^ expected one of "tls-alpn-01", "http-01"
  |
  = help: did you mean `http-01`?

error: a site whose certificate cannot be obtained
 --> baton.toml:8:7
  |
8 | tls = "acme"
  |       ^^^^^^ is to come from an authority
  |
  = help: name the site's hosts: `hosts = ["example.org", "www.example.org"]`

error: a site whose certificate cannot be obtained
  --> baton.toml:14:7
   |
13 | hosts = ["example.org", "*.example.org"]
   |         -------------------------------- "*.example.org" is a wildcard: an authority issues those by DNS-01 only, which Baton does not speak
14 | tls = "acme"
   |       ^^^^^^ is to come from an authority
   |
   = help: name the site's hosts: `hosts = ["example.org", "www.example.org"]`
"#,
    );
    refused(
        "[acme]\nchallenges = []\n[[site]]\nroot = \"www\"\n",
        r#"
error: `acme.challenges` is empty
 --> baton.toml:2:14
  |
2 | challenges = []
  |              ^^ the authority could check no name
  |
  = help: leave it out, or name one
"#,
    );
}
