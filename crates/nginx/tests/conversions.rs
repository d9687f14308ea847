//! Goal: each directive becomes what users of both servers expect, or is said to be left out. Method: short
//! configurations, with the tables and the notes that they become.

use baton_nginx::{Converted, Includes, Weight, convert};

/// No file but an error page.
struct ErrorPage;

impl Includes for ErrorPage {
    fn read(&mut self, _pattern: &str) -> Option<Vec<(String, String)>> {
        None
    }

    fn exists(&mut self, path: &str) -> bool {
        path == "/srv/50x.html"
    }

    fn folder(&self) -> &'static str {
        "/etc/nginx"
    }
}

fn converted(text: &str) -> Converted {
    convert("t", text, &mut ErrorPage).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The result without its comments.
fn tables(text: &str) -> String {
    let toml = converted(text).toml;
    let lines = toml.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

/// A server with these directives becomes a site with these keys behind its addresses.
#[track_caller]
fn becomes(directives: &str, expected: &str) {
    let text = format!("server {{ listen 8080; {directives} }}");
    let expected = format!("[[site]]\nlisten = [\"0.0.0.0:8080\"]\n{expected}");
    assert_eq!(tables(&text), expected, "{directives}");
}

/// Where one place allows longer heads than Baton does by itself, all do.
#[test]
fn long_heads() {
    let limits = |directives: &str| {
        let toml = tables(&format!("http {{ server {{ listen 80; root /srv; {directives} }} }}"));
        toml.split("[[site]]").next().unwrap_or_default().to_owned()
    };
    for (directives, expected) in [
        ("fastcgi_buffer_size 64k; proxy_buffer_size 4k; large_client_header_buffers 4 8k;", ""),
        ("fastcgi_buffer_size 128k;", "[limits]\nresponse_head_bytes_max = 131072\n"),
        (
            "proxy_buffer_size 128k; location /a { proxy_buffer_size 256k; }",
            "[limits]\nresponse_head_bytes_max = 262144\n",
        ),
        ("proxy_buffer_size 4m;", "[limits]\nresponse_head_bytes_max = 1048576\n"),
        (
            "large_client_header_buffers 4 32k;",
            "[limits]\nhead_bytes_max = 131072\ntarget_bytes_max = 32768\n",
        ),
    ] {
        assert_eq!(limits(directives), expected, "{directives}");
    }
}

#[test]
fn files() {
    becomes(
        "server_name a.example www.a.example; root /srv/a/; index index.html index.htm; autoindex on;",
        "hosts = [\"a.example\", \"www.a.example\"]\nroot = \"/srv/a\"\nindex = [\"index.html\", \"index.htm\"]\nbrowse = true\n",
    );
    becomes(
        "root /srv; location / { try_files $uri $uri/ /index.html; }",
        "root = \"/srv\"\ntry_files = [\"$path\", \"$path/\", \"/index.html\"]\n",
    );
    becomes("root /srv; location / { try_files $uri $uri/ =404; }", "root = \"/srv\"\n");
    becomes(
        "root /srv; location /pictures/ { alias /data/pictures/; autoindex on; } location /films { root /data; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/pictures/\"\nroot = \"/data/pictures\"\nbrowse = true\n\
         [[site.route]]\npath = \"/films\"\nroot = \"/data\"\nstrip_prefix = false\n\
         [[site.route]]\nexact = \"/pictures\"\n[[site.route]]\nregex = \"^/films[^/]\"\nroot = \"/data\"\n",
    );
}

#[test]
fn fields() {
    becomes(
        r"root /srv; add_header X-A b; add_header X-A c always; location ~* \.(css|jpe?g)$ { expires 30d; access_log off; }",
        "root = \"/srv\"\nheaders = { add = { X-A = [\"b\", \"c\"] } }\n[[site.route]]\nregex = \"(?i)\\\\.(css|jpe?g)$\"\n\
         cache_control = [{ match = \"*\", value = \"max-age=2592000\" }]\nheaders = { add = { X-A = [\"b\", \"c\"] } }\n",
    );
    becomes(
        "root /srv; location /a/ { expires max; add_header Cache-Control public; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/a/\"\ncache_control = [{ match = \"*\", value = \"max-age=315360000, public\" }]\n",
    );
}

#[test]
fn compression() {
    becomes(
        "root /srv; gzip on; gzip_types text/css; gzip_comp_level 5;",
        "root = \"/srv\"\ncompress = true\n",
    );
    becomes(
        "root /srv; gzip on; gzip_min_length 2k; location /api/ { gzip off; proxy_pass http://127.0.0.1:1; } \
         location /old { gzip off; return 404; }",
        "root = \"/srv\"\ncompress = { min_bytes = 2048 }\n[[site.route]]\npath = \"/api/\"\nproxy = { to = \
         \"http://127.0.0.1:1\", host = \"origin\", body_bytes_max = 1048576 }\ncompress = false\n[[site.route]]\npath = \"/old\"\nrespond = { status = 404 }\n\
         [[site.route]]\nexact = \"/api\"\nredirect = { to = \"/api/$rest\", status = 301 }\n[[site.route]]\nregex = \"^/old[^/]\"\n\
         respond = { status = 404 }\n",
    );
    becomes("root /srv; gzip off;", "root = \"/srv\"\n");
}

#[test]
fn answers_and_redirections() {
    becomes(
        "server_name a.example b.example; return 301 https://$host$request_uri;",
        "hosts = [\"a.example\", \"b.example\"]\n[[site.route]]\npath = \"/\"\nredirect = { to = \"https://$host$uri\", \
         status = 301 }\n",
    );
    becomes(
        "server_name a.example b.example; return 301 https://$server_name$request_uri;",
        "hosts = [\"a.example\", \"b.example\"]\n[[site.route]]\npath = \"/\"\nredirect = { to = \"https://a.example$uri\", \
         status = 301 }\n",
    );
    becomes(
        "return 301 https://$host$request_uri;",
        "[[site.route]]\npath = \"/\"\nredirect = { to = \"https://$host$uri\", status = 301 }\n",
    );
    becomes(
        "return 301 $scheme://www.a.example$request_uri;",
        "[[site.route]]\npath = \"/\"\nredirect = { to = \"$scheme://www.a.example$uri\", status = 301 }\n",
    );
    becomes(
        "location /old/ { return 302 /new; } location = /ping { default_type text/x; return 200 'pong'; }",
        "[[site.route]]\npath = \"/old/\"\nredirect = { to = \"/new\", status = 302 }\n[[site.route]]\nexact = \"/ping\"\n\
         respond = { status = 200, body = \"pong\", media_type = \"text/x\" }\n[[site.route]]\nexact = \"/old\"\n",
    );
    becomes(
        "root /srv; rewrite ^/old/(.*)$ /new/$1 permanent;",
        "root = \"/srv\"\n[[site.route]]\npath = \"/old/\"\nredirect = { to = \"/new$rest\", status = 301 }\n\
         [[site.route]]\nexact = \"/old\"\n",
    );
    becomes(
        "root /srv; error_page 500 502 /50x.html; error_page 404 /none.html; location = /50x.html { internal; }",
        "root = \"/srv\"\nerror_pages = { 500 = \"/srv/50x.html\", 502 = \"/srv/50x.html\" }\n\
         [[site.route]]\nexact = \"/50x.html\"\nrespond = { status = 404 }\n",
    );
}

#[test]
fn origins() {
    becomes(
        "location / { proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; proxy_set_header X-Key k; }",
        "[[site.route]]\npath = \"/\"\nproxy = { to = \"http://127.0.0.1:3000\", host = \"client\", request_headers = { set = { \
         X-Key = \"k\" } }, body_bytes_max = 1048576 }\n",
    );
    let text = "upstream b { least_conn; server 10.0.0.1:80 weight=2; server 10.0.0.2:80 backup; server 10.0.0.3 down; }
        server { location /api/ { proxy_pass http://b/; client_max_body_size 0; proxy_read_timeout 5s; } }";
    let expected = "proxy = { policy = \"least-connections\", to = [{ to = \"http://10.0.0.1:80/\", weight = 2 }, { to = \
                    \"http://10.0.0.2:80/\", backup = true }], host = \"b\", head_ms = 5000, gap_ms = 5000, body_bytes_max = \
                    1125899906842624 }\n";
    assert!(tables(text).contains(expected), "{}", tables(text));
}

#[test]
fn applications() {
    let php = "include fastcgi_params; fastcgi_pass unix:/run/php.sock;";
    becomes(
        &format!(
            r"root /srv; index index.php; location / {{ try_files $uri $uri/ /index.php?$args; }} location ~ \.php$ {{ {php} }}"
        ),
        "root = \"/srv\"\nindex = [\"index.php\"]\n[[site.route]]\npath = \"/\"\ntry_files = [\"$path\", \"$path/\", \"/index.php\"]\nfastcgi = { to = \
         \"unix:/run/php.sock\", body_bytes_max = 1048576, scripts = [\".php\"] }\n[[site.route]]\nregex = \"\\\\.php$\"\n\
         fastcgi = { to = \"unix:/run/php.sock\", body_bytes_max = 1048576, scripts = [\".php\"] }\n[[site.route]]\nregex = \"^/.*\\\\.php/\"\n\
         try_files = [\"$path\", \"$path/\", \"/index.php\"]\n",
    );
    becomes(
        "root /srv; location /app { fastcgi_pass 127.0.0.1:9000; fastcgi_param APP_ENV prod; fastcgi_param QUERY_STRING $query_string; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/app\"\nfastcgi = { to = \"127.0.0.1:9000\", params = { APP_ENV = \"prod\" }, \
         body_bytes_max = 1048576 }\n[[site.route]]\nregex = \"^/app[^/]\"\nfastcgi = { to = \"127.0.0.1:9000\", params = { \
         APP_ENV = \"prod\" }, body_bytes_max = 1048576 }\n",
    );
    let part =
        "server { listen 80; location / { fastcgi_pass unix:/p; } location /b { fastcgi_pass unix:/p; } }";
    assert_eq!(
        converted(part).notes.iter().filter(|note| note.text.contains("recipes/faster.md")).count(),
        2
    );
}

#[test]
fn locations() {
    becomes(
        r"root /srv; location = /ping { return 200 x; } location ^~ /a/ { alias /b/; } location ~* ^/c/\d+$ { deny all; }",
        "root = \"/srv\"\n[[site.route]]\nexact = \"/ping\"\nrespond = { status = 200, body = \"x\", media_type = \"text/plain\" }\n\
         [[site.route]]\npath = \"/a/\"\nroot = \"/b\"\n[[site.route]]\nregex = \"(?i)^/c/\\\\d+$\"\n\
         respond = { status = 403 }\n[[site.route]]\nexact = \"/a\"\n",
    );
    // A regular expression within a location holds below its path only.
    becomes(
        r"root /srv; location /up.loads/ { location ~ \.php$ { deny all; } }",
        "root = \"/srv\"\n[[site.route]]\nregex = \"^/up\\\\.loads/.*\\\\.php$\"\nrespond = { status = 403 }\n\
         [[site.route]]\npath = \"/up.loads/\"\n",
    );
    becomes(
        r"root /srv; rewrite ^/a/(\d+)$ /b?id=$1 last; location /api/ { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://b; }",
        "root = \"/srv\"\n[[site.route]]\nregex = \"^/a/(\\\\d+)$\"\nrewrite = { to = \"/b?id=$1&$query\" }\n[[site.route]]\npath = \
         \"/api/\"\nproxy = { to = \"http://b/\", host = \"origin\", body_bytes_max = 1048576 }\n[[site.route]]\nexact = \"/api\"\n\
         redirect = { to = \"/api/$rest\", status = 301 }\n",
    );
    // What looks ahead has no counterpart: a guard is said to be one, and what it may be about is closed.
    let inner = tables(r"server { root /srv; location ~ \.php$ { location ~ /in/ { deny all; } } }");
    assert!(inner.contains("regex = \"/in/\"\nrespond = { status = 403 }\n"), "{inner}");
    let ahead = tables(r"server { root /srv; location ~ ^/private/(?!open/) { deny all; } }");
    assert!(ahead.contains("regex = \"^/private/\"\nrespond = { status = 403 }\n"), "{ahead}");
    let notes = converted(
        r"server { location ~ /(?!open) { deny all; } location ~ /\.(?!well-known) { deny all; } }",
    )
    .notes;
    let weights: Vec<_> = notes.iter().map(|note| note.weight).collect();
    assert_eq!(weights, [Weight::Guard, Weight::Remark], "{notes:?}");
}

#[test]
fn addresses_and_certificates() {
    let text = "server { listen 80; listen [::]:80; server_name b.example; root /b; }
        server { listen 80 default_server; listen 443 ssl http2; server_name .a.example; ssl_certificate a.pem; \
        ssl_certificate_key /k.pem; root /a; if ($scheme = http) { return 301 https://$host$request_uri; } }";
    assert_eq!(
        tables(text),
        "[[site]]\nlisten = [\":80\", \"0.0.0.0:443 tls\"]\nhosts = [\"a.example\", \"*.a.example\"]\ntls = { certificate = \
         \"/etc/nginx/a.pem\", key = \"/k.pem\" }\nredirect_https = true\nroot = \"/a\"\n[[site]]\nlisten = [\":80\"]\nhosts = [\"b.example\"]\nroot = \"/b\"\n",
    );
}

#[test]
fn what_holds_for_the_whole_server() {
    let text = "user web; events { worker_connections 512; } http { keepalive_timeout 20; access_log /var/log/a; server_tokens off; underscores_in_headers on; }";
    let expected = "[server]\nuser = \"web\"\n[limits]\nconnections_max = 512\nunderscores_in_headers = true\n[timeouts]\nidle_ms = 20000\n[log]\naccess = \"/var/log/a\"\n";
    assert_eq!(tables(text), expected);
    let notes = converted(text).notes;
    assert_eq!((notes.len(), notes[0].weight), (1, Weight::LeftOut), "no server: {notes:?}");
}

/// Goal: each server has the log that it names, or the one of all; a daemon is named as Baton does, and what is lost is said.
#[test]
fn logs() {
    let text = "http { access_log syslog:server=unix:/dev/log; error_log syslog:server=unix:/dev/log; \
                map $http_user_agent $wanted { ~Monitor 0; default 1; } \
                server { listen 80; root /a; access_log syslog:server=unix:/dev/log; } \
                server { listen 81; root /b; access_log /var/log/b combined buffer=8k; } \
                server { listen 82; root /c; access_log syslog:server=[::1]:5514,nohostname combined if=$wanted; } \
                server { listen 83; root /d; access_log off; } }";
    assert_eq!(
        tables(text),
        "[log]\naccess = \"syslog\"\nerror = \"stderr\"\n[[site]]\nlisten = [\"0.0.0.0:80\"]\nroot = \"/a\"\n\
         [[site]]\nlisten = [\"0.0.0.0:81\"]\nroot = \"/b\"\naccess_log = \"/var/log/b\"\n\
         [[site]]\nlisten = [\"0.0.0.0:82\"]\nroot = \"/c\"\naccess_log = \"syslog://[::1]:5514\"\n\
         access_log_when = { header = { User-Agent = \"!~Monitor\" } }\n\
         [[site]]\nlisten = [\"0.0.0.0:83\"]\nroot = \"/d\"\naccess_log = false\n",
    );
    assert!(
        converted(text).notes.iter().all(|note| note.weight == Weight::Remark),
        "{:?}",
        converted(text).notes
    );
    for log in [
        "access_log syslog:server=a,facility=local0;",
        "access_log syslog:server=a,tag=shop;",
        "access_log syslog:server=unix:log;",
        "access_log /var/log/a main;",
        "access_log /var/log/a combined if=$unknown;",
        "access_log /var/log/a; access_log /var/log/b;",
        "access_log /var/log/$host;",
    ] {
        let notes = converted(&format!("server {{ listen 80; root /srv; {log} }}")).notes;
        assert_eq!(notes.iter().filter(|note| note.weight == Weight::LeftOut).count(), 1, "{log}: {notes:?}");
    }
}

/// Goal: what is left out is said, with its place and its weight, in the report and in the result.
#[test]
fn what_is_left_out_is_said() {
    let text = "server {\n  listen 80;\n  sub_filter a b;\n  location / {\n    auth_request /a;\n  }\n}\n";
    let converted = converted(text);
    let notes: Vec<_> = converted.notes.iter().map(|note| (note.weight, note.to_string())).collect();
    assert_eq!(notes[0], (Weight::LeftOut, "t:3:3: \"sub_filter\" has no counterpart: left out".into()));
    assert!(
        notes
            .iter()
            .any(|(weight, text)| *weight == Weight::Guard && text.starts_with("t:5:5: \"auth_request\""))
    );
    for (_, note) in &notes {
        assert!(converted.toml.contains(&format!("# {note}\n")), "{note}: {}", converted.toml);
    }
}

#[test]
fn addresses_of_clients() {
    becomes(
        "root /srv; deny 10.0.0.1; location /a/ { allow 10.0.0.0/8; allow ::1; deny all; } location /b/ { allow all; }",
        "deny = [\"10.0.0.1\"]\nroot = \"/srv\"\n[[site.route]]\npath = \"/a/\"\nallow = [\"10.0.0.0/8\", \"::1\"]\ndeny = []\n\
         [[site.route]]\npath = \"/b/\"\nallow = \"all\"\ndeny = []\n[[site.route]]\nexact = \"/a\"\n[[site.route]]\nexact = \"/b\"\n",
    );
    becomes(
        "root /srv; location /a/ { deny 10.0.0.1; allow 10.0.0.0/8; deny all; return 200 x; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/a/\"\nrespond = { status = 200, body = \"x\", media_type = \"text/plain\" }\n\
         allow = [\"10.0.0.0/8\"]\ndeny = [\"10.0.0.1\"]\n[[site.route]]\nexact = \"/a\"\n",
    );
}

/// Goal: a place whose guard is not known is closed, not open, whatever else it does; nothing else is.
#[test]
fn what_cannot_be_guarded_is_closed() {
    for guard in [
        "auth_request /a;",
        "auth_basic x;",
        "deny all;",
        "allow 10.0.0.1; deny 10.0.0.0/8;",
        "limit_except GET { allow 10.0.0.1; deny all; }",
        "if ($ssl_client_serial != 1) { return 403; }",
    ] {
        let closed =
            "[[site.route]]\npath = \"/a/\"\nrespond = { status = 403 }\n[[site.route]]\nexact = \"/a\"\n";
        for content in ["", "proxy_pass http://b;", "alias /x/;", "return 200 x;"] {
            becomes(
                &format!("root /srv; location /a/ {{ {guard} {content} }}"),
                &format!("root = \"/srv\"\n{closed}"),
            );
        }
        let whole =
            tables(&format!("server {{ root /srv; {guard} location /a/ {{ proxy_pass http://b; }} }}"));
        assert_eq!(whole.matches("respond = { status = 403 }").count(), 3, "{guard}: {whole}");
    }
    becomes(
        "root /srv; auth_basic x; location /open/ { auth_basic off; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/\"\nrespond = { status = 403 }\n[[site.route]]\npath = \"/open/\"\n\
         [[site.route]]\nexact = \"/open\"\nrespond = { status = 403 }\n",
    );
    becomes(
        "root /srv; location /a/ { limit_except GET POST { deny all; } } location /b/ { return 403 $uri; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/a/\"\nmethods = [\"GET\", \"POST\"]\n[[site.route]]\npath = \"/b/\"\n\
         respond = { status = 403 }\n[[site.route]]\nexact = \"/a\"\n[[site.route]]\nexact = \"/b\"\n",
    );
    becomes("root /srv; allow all; deny all;", "root = \"/srv\"\n");
}

#[test]
fn passwords() {
    becomes(
        "root /srv; auth_basic \"Staff only\"; auth_basic_user_file users; location /open/ { auth_basic off; } \
         location /other/ { auth_basic_user_file /etc/others; }",
        "basic_auth = { realm = \"Staff only\", file = \"/etc/nginx/users\" }\nroot = \"/srv\"\n[[site.route]]\npath = \"/open/\"\n\
         basic_auth = \"off\"\n[[site.route]]\npath = \"/other/\"\nbasic_auth = { realm = \"Staff only\", file = \"/etc/others\" }\n\
         [[site.route]]\nexact = \"/open\"\n[[site.route]]\nexact = \"/other\"\n",
    );
    // Some files alone are guarded, and not the others.
    becomes(
        r"root /srv; location ~ \.log$ { auth_basic x; auth_basic_user_file /u; expires 1d; }",
        "root = \"/srv\"\n[[site.route]]\nregex = \"\\\\.log$\"\ncache_control = [{ match = \"*\", value = \"max-age=86400\" }]\n\
         basic_auth = { realm = \"x\", file = \"/u\" }\n",
    );
    becomes(
        r"root /srv; location ~ \.php$ { deny 10.0.0.1; fastcgi_pass unix:/p; }",
        "root = \"/srv\"\n[[site.route]]\nregex = \"\\\\.php$\"\nfastcgi = { to = \"unix:/p\", body_bytes_max = 1048576, scripts = \
         [\".php\"] }\ndeny = [\"10.0.0.1\"]\n",
    );
    becomes(
        "root /srv; satisfy any; allow 10.0.0.0/8; deny all; auth_basic x; auth_basic_user_file /u;",
        "allow = [\"10.0.0.0/8\"]\nbasic_auth = { realm = \"x\", file = \"/u\" }\nsatisfy = \"any\"\nroot = \"/srv\"\n",
    );
    // A password or an address that no rule names, or a password that no file has.
    for place in ["satisfy any; deny 10.0.0.1; auth_basic x; auth_basic_user_file /u;", "auth_basic x;"] {
        let text = format!("server {{ listen 80; root /srv; location /x/ {{ {place} }} }}");
        let converted = converted(&text);
        assert!(
            converted.toml.contains("path = \"/x/\"\nrespond = { status = 403 }\n"),
            "{}",
            converted.toml
        );
        assert!(converted.notes.iter().any(|note| note.weight == Weight::Guard), "{place}");
    }
}

#[test]
fn rates() {
    let zones = "limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s; limit_req_zone $http_x_api_key zone=two:1m \
                 rate=30r/m; limit_req_zone $server_name zone=three:1m rate=1r/s;";
    let tables = |directives: &str| {
        tables(&format!("http {{ {zones} server {{ listen 80; root /srv; {directives} }} }}"))
    };
    let site = "[[site]]\nlisten = [\"0.0.0.0:80\"]\n";
    assert_eq!(
        tables(
            "limit_req zone=one burst=20 nodelay; limit_req_status 429; location /api/ { limit_req zone=two; }"
        ),
        format!(
            "{site}rate_limit = {{ requests = 10, per = \"1s\", burst = 21 }}\nroot = \"/srv\"\n[[site.route]]\npath = \"/api/\"\n\
             rate_limit = {{ requests = 30, per = \"1m\", burst = 1, key = \"header:x-api-key\" }}\n[[site.route]]\nexact = \"/api\"\n"
        )
    );
    for left_out in
        ["limit_req zone=three;", "limit_req zone=none;", "limit_req zone=one; limit_req zone=two;"]
    {
        let text = format!("http {{ {zones} server {{ listen 80; root /srv; {left_out} }} }}");
        let guards = converted(&text).notes.into_iter().filter(|note| note.weight == Weight::Guard).count();
        assert_eq!(guards, 1, "{left_out}");
    }
}

#[test]
fn addresses_behind_proxies() {
    becomes(
        "set_real_ip_from 10.0.0.0/8; set_real_ip_from unix:; real_ip_header X-Forwarded-For; real_ip_recursive on; root /srv;",
        "real_ip = { from = [\"10.0.0.0/8\", \"unix:\"], header = \"X-Forwarded-For\" }\nroot = \"/srv\"\n",
    );
    becomes(
        "set_real_ip_from 10.0.0.1; root /srv;",
        "real_ip = { from = [\"10.0.0.1\"], header = \"X-Real-IP\" }\nroot = \"/srv\"\n",
    );
    let behind = "server { listen 8080 proxy_protocol; set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; root /srv; }";
    let expected = "[[site]]\nlisten = [\"0.0.0.0:8080\"]\nproxy_protocol = { from = [\"10.0.0.1\"] }\nroot = \"/srv\"\n";
    assert_eq!(tables(behind), expected);
    // It is the address that has it, whichever server says so.
    let others = "http { set_real_ip_from 10.0.0.1; server { listen 8080; server_name a; root /srv; } \
                  server { listen 8080 proxy_protocol; server_name b; root /srv; } \
                  server { listen 8081; server_name c; root /srv; } }";
    let of_each: Vec<_> =
        tables(others).split("[[site]]").skip(1).map(|site| site.contains("proxy_protocol = ")).collect();
    assert_eq!(of_each, [true, true, false]);
    let unknown = converted("server { listen 8080 proxy_protocol; root /srv; }");
    assert!(unknown.notes.iter().any(|note| note.weight == Weight::Guard), "{}", unknown.toml);
}

#[test]
fn files_by_media_type() {
    let map =
        "map $sent_http_content_type $expires { default off; text/html epoch; text/css max; ~image/ 30d; }";
    let expected = "[[site]]\nlisten = [\"0.0.0.0:80\"]\nroot = \"/srv\"\ncache_control = [{ types = [\"text/html\"], value = \"no-cache\" }, \
                    { types = [\"text/css\"], value = \"max-age=315360000\" }, { types = [\"image/*\"], value = \"max-age=2592000\" }]\n";
    let text = format!("http {{ {map} server {{ listen 80; root /srv; expires $expires; }} }}");
    assert_eq!(tables(&text), expected);
    assert!(converted(&text).notes.is_empty());
}

#[test]
fn slow_bodies() {
    becomes(
        "root /srv; client_body_timeout 10s; location /up/ { client_body_timeout 2m; }",
        "body_ms = 10000\nroot = \"/srv\"\n[[site.route]]\npath = \"/up/\"\nbody_ms = 120000\n",
    );
}

/// Goal: a prefix of nginx holds wherever it ends, guards of it included; what is longer comes first.
#[test]
fn prefixes_end_anywhere() {
    becomes(
        "root /srv; location / { } location /admin { deny all; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/admin\"\nrespond = { status = 403 }\n\
         [[site.route]]\nregex = \"^/admin[^/]\"\nrespond = { status = 403 }\n",
    );
    becomes(
        "location /a { return 200 a; } location /ab/ { return 200 b; }",
        "[[site.route]]\npath = \"/a\"\nrespond = { status = 200, body = \"a\", media_type = \"text/plain\" }\n\
         [[site.route]]\npath = \"/ab/\"\nrespond = { status = 200, body = \"b\", media_type = \"text/plain\" }\n\
         [[site.route]]\nexact = \"/ab\"\nrespond = { status = 200, body = \"a\", media_type = \"text/plain\" }\n\
         [[site.route]]\nregex = \"^/ab/\"\nrespond = { status = 200, body = \"b\", media_type = \"text/plain\" }\n\
         [[site.route]]\nregex = \"^/a[^/]\"\nrespond = { status = 200, body = \"a\", media_type = \"text/plain\" }\n",
    );
    // For Baton, `/foo/` would be for both.
    let both =
        tables("server { location /foo { return 301 /foo/; } location /foo/ { proxy_pass http://b; } }");
    assert!(both.contains("exact = \"/foo\"\nredirect = { to = \"/foo/\", status = 301 }\n"), "{both}");
    assert!(!both.contains("path = \"/foo\"\n"), "{both}");
}

/// Goal: a named location is reached through a path that clients cannot ask for.
#[test]
fn named_locations() {
    let named = "location @app { proxy_pass http://unix:/run/app.sock; }";
    let app = "path = \"/__app\"\ninternal = true\nproxy = { to = \"unix:/run/app.sock:/\", host = \"origin\", rewrite_locations = false, \
               body_bytes_max = 1048576 }\n";
    let site = |text: &str| tables(&format!("server {{ root /srv; {text} {named} }}"));
    let tried = site("location / { try_files $uri/index.html $uri @app; }");
    assert!(tried.contains("try_files = [\"$path/index.html\", \"$path\", \"/__app$uri\"]"), "{tried}");
    assert!(tried.contains(app), "{tried}");
    assert!(site("error_page 404 = @app;").contains("try_files = [\"$path\", \"$path/\", \"/__app$uri\"]"));
    let sent = site("location / { error_page 418 = @app; return 418; }");
    assert!(sent.contains("path = \"/\"\nrewrite = { to = \"/__app$uri\" }\n"), "{sent}");
    assert!(!site("").contains("/__app"), "nothing leads there");
    // Clients cannot ask for it, so what guards the others has nothing to say there.
    let guarded = site(
        r"location / { try_files $uri @app; } location /admin { deny all; } location ~ \.zip$ { deny all; }",
    );
    assert_eq!(guarded.matches("/__app").count(), 2, "{guarded}");
    assert!(guarded.contains("path = \"/__app\"\nbefore_patterns = true\ninternal = true\n"), "{guarded}");
}

/// Goal: an index with a location of its own is answered by that where nginx looks for an index, and nowhere else.
#[test]
fn indexes_with_locations() {
    let site = |text: &str| {
        tables(&format!("server {{ root /srv; {text} location = /index.html {{ expires -1; }} }}"))
    };
    let index = "exact = \"/\"\nrewrite = { to = \"/index.html\" }\n";
    assert!(site("").contains(index));
    assert!(
        site("location / { allow 10.0.0.1; deny all; }")
            .contains(&format!("{index}allow = [\"10.0.0.1\"]\n"))
    );
    for other in
        ["location / { proxy_pass http://b; }", "location / { try_files $uri /x; }", "try_files $uri /x;"]
    {
        assert!(!site(other).contains("exact = \"/\"\n"), "{other}");
    }
}

/// Goal: an expression within a location opens no longer prefix beside it, and `^~` keeps away those beside it alone.
#[test]
fn guards_beside_nested_expressions() {
    let site = |text: &str| tables(&format!("server {{ root /srv; {text} }}"));
    let beside = site(r"location /a/ { location ~ \.txt$ { expires 1d; } } location /a/b/ { deny all; }");
    assert!(beside.contains("path = \"/a/b/\"\nbefore_patterns = true\nrespond"), "{beside}");
    let uploads =
        site(r"location ^~ /up/ { location ~ \.php$ { deny all; } } location ~ \.php$ { return 200 x; }");
    let order = [
        "regex = \"^/up/.*\\\\.php$\"\nrespond = { status = 403 }",
        "regex = \"^/up/\"\n",
        "regex = \"\\\\.php$\"\n",
    ];
    let places: Vec<_> = order.iter().map(|part| uploads.find(part)).collect();
    assert!(places[0].is_some() && places.is_sorted(), "{places:?} {uploads}");
}

/// Goal: what a request field or a protocol guarded is not lost without a word.
#[test]
fn guards_that_are_no_locations() {
    for (text, part) in [
        (
            "location / { proxy_pass http://b; proxy_set_header X-Remote-User $remote_user; }",
            "remove = [\"X-Remote-User\"]",
        ),
        (
            "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k; ssl_protocols TLSv1.3; root /srv;",
            "tls",
        ),
        (
            "listen 80; listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k; ssl_verify_client on; \
             ssl_client_certificate /a; root /srv;",
            "listen = [\"0.0.0.0:443 tls\"]",
        ),
        (r"root /srv; location ~ \.html$ { deny all; }", "index = []"),
    ] {
        let converted = converted(&format!("server {{ {text} }}"));
        assert!(converted.notes.iter().any(|note| note.weight == Weight::Guard), "{text}");
        assert!(converted.toml.contains(part), "{text}: {}", converted.toml);
    }
    let scripts =
        tables(r"server { root /srv; index index.php; location ~ ^/uploads/.*\.php$ { deny all; } }");
    assert!(scripts.contains("regex = \"^/uploads/(?:.*/)?$\"\nrespond = { status = 403 }\n"), "{scripts}");
}

/// Goal: files that are known are read where nginx is not installed, constants are put in, parts are taken as such.
#[test]
fn parts_and_constants() {
    let known = converted(
        "http { include /etc/nginx/mime.types; server { include snippets/fastcgi-php.conf; root /srv; } }",
    );
    assert!(known.notes.iter().all(|note| note.weight == Weight::Remark), "{:?}", known.notes);
    becomes("set $base /srv/shop; set $pub ${base}/pub; root $pub;", "root = \"/srv/shop/pub\"\n");
    let changed = converted("server { set $base /srv; root $base; location /a { set $base /b; } }");
    assert!(
        changed.notes.iter().any(|note| note.weight == Weight::LeftOut),
        "not constant: {}",
        changed.toml
    );
    let unknown =
        "[[site]]\nlisten = [\"0.0.0.0:80\"]\n[[site.route]]\npath = \"/\"\nrespond = { status = 404 }\n";
    for text in
        ["server { root /srv/$host; }", "server { root /srv/$host; location / { try_files $uri =404; } }"]
    {
        assert_eq!(tables(text), unknown, "{text}");
    }
    let part = converted("location /a/ { return 404; }");
    assert!(part.toml.contains("path = \"/a/\""), "{}", part.toml);
    assert_eq!(part.notes.len(), 1, "{:?}", part.notes);
}

/// Goal: what clients cannot ask for they cannot ask for, whatever leads there.
#[test]
fn internal_locations() {
    let site = |text: &str| tables(&format!("server {{ listen 80; root /srv; {text} }}"));
    let app = "location /app/ { fastcgi_pass unix:/run/app.sock; }";
    let files = site(&format!("location /protected/ {{ internal; alias /data/files/; }} {app}"));
    assert!(files.contains("path = \"/protected/\"\ninternal = true\nroot = \"/data/files\"\n"), "{files}");
    let tried = site("location / { try_files $uri /inner/x; } location /inner/ { internal; return 200 x; }");
    assert!(tried.contains("path = \"/inner/\"\ninternal = true\nrespond = "), "{tried}");
    let alone = "location /inner/ { internal; }";
    assert!(site(alone).contains("path = \"/inner/\"\nrespond = { status = 404 }\n"));
    let notes = converted(&format!("server {{ {alone} location / {{ proxy_pass http://b; }} }}")).notes;
    assert!(notes.iter().any(|note| note.weight == Weight::LeftOut), "an origin may lead there: {notes:?}");
}

/// Goal: a cache keeps what nginx's would, and nothing where that cannot be said.
#[test]
fn caches() {
    let of_cache = |directives: &str| {
        let text = format!(
            "http {{ proxy_cache_path /var/c keys_zone=c:1m max_size=1g; server {{ listen 80; \
             location / {{ proxy_pass http://127.0.0.1:1; proxy_cache c; {directives} }} }} }}"
        );
        let converted = converted(&text);
        let cache = converted.toml.lines().find_map(|line| line.strip_prefix("cache = ")).map(str::to_owned);
        (cache, converted.notes.iter().all(|note| note.weight == Weight::Remark))
    };
    let none = "heuristic_max_s = 0, negative_s = 0, stale_if_unreachable_s = 0";
    let kept = |keys: &str, is_equal| (Some(format!("{{ {keys}, obey_clients = false }}")), is_equal);
    assert_eq!(of_cache(""), kept(none, true));
    assert_eq!(
        of_cache(
            "proxy_cache_valid 200 302 10m; proxy_cache_valid 404 1m; proxy_cache_key $scheme$host$request_uri;"
        ),
        kept(
            "heuristic_max_s = 0, negative_s = 60, stale_if_unreachable_s = 0, default_s = 600, error_max_s = 60",
            true
        )
    );
    assert_eq!(
        of_cache("proxy_cache_use_stale error http_500 updating; proxy_cache_lock on;"),
        kept(
            "heuristic_max_s = 0, negative_s = 0, stale_if_unreachable_s = 600, stale_if_error_s = 600, \
             stale_while_revalidate_s = 600",
            true
        )
    );
    assert_eq!(of_cache("proxy_cache_key $host$uri;"), kept(&format!("ignore_query = true, {none}"), false));
    assert_eq!(
        of_cache("proxy_ignore_headers Set-Cookie;"),
        kept(&format!("store_set_cookie = true, {none}"), true)
    );
    for unknown in [
        "proxy_cache_bypass $cookie_session; proxy_no_cache $http_x;",
        "proxy_no_cache $skip;",
        "proxy_cache_key $host$request_uri$cookie_lang;",
        "proxy_cache_methods GET HEAD POST;",
    ] {
        assert_eq!(of_cache(unknown), (None, false), "{unknown}");
    }
    let bypassed = "proxy_cache_bypass $cookie_session $http_authorization; proxy_no_cache $cookie_session;";
    let when = "bypass_when = { cookie = { session = [\"~.\", \"!0\"] } }";
    assert_eq!(of_cache(bypassed), kept(&format!("{when}, {none}"), true));
    assert_eq!(of_cache("proxy_cache off;").0, None);
}

/// Goal: maps of paths and of addresses become what they decide; others are named.
#[test]
fn maps() {
    let site = |http: &str, server: &str| {
        let converted = converted(&format!("http {{ {http} server {{ listen 80; root /srv; {server} }} }}"));
        let is_equal = converted.notes.iter().all(|note| note.weight == Weight::Remark);
        (converted.toml, is_equal)
    };
    let moved = "map $uri $new { default ''; /old /new; /a/b https://b.example/; }";
    for (toml, is_equal) in [
        site(moved, "if ($new) { return 301 $new; }"),
        site(moved, "if ($new) { rewrite ^ $new permanent; }"),
    ] {
        assert!(toml.contains("exact = \"/old\"\nredirect = { to = \"/new\", status = 301 }\n"), "{toml}");
        assert!(toml.contains("exact = \"/a/b\"\nredirect = { to = \"https://b.example/\""), "{toml}");
        assert!(is_equal, "{toml}");
    }
    let networks = "geo $bad { default 0; 192.0.2.0/24 1; 2001:db8::/32 1; }";
    let refused = site(networks, "if ($bad) { return 403; }");
    assert!(
        refused.0.contains("deny = [\"192.0.2.0/24\", \"2001:db8::/32\"]\n") && refused.1,
        "{}",
        refused.0
    );
    let others =
        site("geo $in { default no; 10.0.0.0/8 yes; }", "location /a/ { if ($in = no) { return 403; } }");
    assert!(others.0.contains("path = \"/a/\"\nallow = [\"10.0.0.0/8\"]\n") && others.1, "{}", others.0);
    for (http, server) in [
        ("geo $bad { default 0; 10.0.0.0/8 1; 10.1.0.0/16 0; }", "if ($bad) { return 403; }"),
        (networks, "allow 10.0.0.1; deny all; if ($bad) { return 403; }"),
        (
            "map $http_user_agent $bad { default 0; ~bot 1; ~google 0; ~crawl 1; }",
            "if ($bad) { return 403; }",
        ),
        ("map $http_x $bad { default 0; a 1; }", "if ($bad) { return 403; } if ($bad) { set $worse 1; }"),
    ] {
        let (toml, is_equal) = site(http, server);
        assert!(toml.contains("respond = { status = 403 }") && !is_equal, "{toml}");
    }
    assert!(!site("map $host $x { default a; }", "").1);
}

/// Goal: a condition that would leave no host for its server is said to be left out.
#[test]
fn the_only_host() {
    let text = "server { server_name a.example; root /srv; if ($host = a.example) { return 301 https://b.example$request_uri; } }";
    assert!(converted(text).notes.iter().any(|note| note.weight == Weight::LeftOut));
}

/// Goal: of a host's name, those that a condition sends elsewhere get a site of their own.
#[test]
fn other_hosts() {
    becomes(
        "server_name a.example www.a.example; root /srv; if ($host != a.example) { return 301 https://a.example$request_uri; }",
        "hosts = [\"a.example\"]\nroot = \"/srv\"\n[[site]]\nlisten = [\"0.0.0.0:8080\"]\nhosts = [\"www.a.example\"]\n\
         [[site.route]]\npath = \"/\"\nredirect = { to = \"https://a.example$uri\", status = 301 }\n",
    );
}

/// Goal: conditions on parts of a request become `when`, with what nginx takes for nothing.
#[test]
fn conditions() {
    let when = |http: &str, condition: &str| {
        let text = format!(
            "http {{ {http} server {{ listen 80; root /srv; location /a/ {{ if ({condition}) {{ return 410; }} }} }} }}"
        );
        let converted = converted(&text);
        assert!(
            converted.notes.iter().all(|note| note.weight == Weight::Remark),
            "{condition}: {converted:?}"
        );
        let whens = converted.toml.lines().filter_map(|line| line.strip_prefix("when = "));
        whens.map(str::to_owned).collect::<Vec<_>>().join(" | ")
    };
    for (condition, expected) in [
        ("$http_user_agent ~* \"(bot|crawl)\"", r#"{ header = { User-Agent = "~(?i)(bot|crawl)" } }"#),
        ("$http_x_beta = 1", r#"{ header = { X-Beta = "1" } }"#),
        ("$http_x_beta != 1", r#"{ header = { X-Beta = "!1" } }"#),
        ("$http_x_beta", r#"{ header = { X-Beta = ["~.", "!0"] } }"#),
        ("$http_x_beta = ''", r#"{ header = { X-Beta = false } } | { header = { X-Beta = "~^$" } }"#),
        ("$http_x_beta != ''", r#"{ header = { X-Beta = "~." } }"#),
        ("$http_x ~ '^$|bad'", r#"{ header = { X = false } } | { header = { X = "~^$|bad" } }"#),
        ("$http_x !~ '^$|bad'", r#"{ header = { X = ["*", "!~^$|bad"] } }"#),
        ("$http_x !~ ^bad", r#"{ header = { X = "!~^bad" } }"#),
        ("$http_x = 'a*?'", r#"{ header = { X = "~^a\\*\\?$" } }"#),
        ("$cookie_beta = yes", r#"{ cookie = { beta = "yes" } }"#),
        ("$arg_debug = 1", r#"{ query = { debug = "1" } }"#),
        ("$request_method = POST", r#"{ method = "POST" }"#),
        ("$request_method = GET", r#"{ method = "~^GET$" }"#),
        ("$request_method !~ ^(GET|HEAD)$", r#"{ method = "!~^(GET|HEAD)$" }"#),
        ("$remote_addr = 192.0.2.1", r#"{ from = "192.0.2.1" }"#),
        ("$remote_addr != 192.0.2.1", r#"{ from = "!192.0.2.1" }"#),
    ] {
        assert_eq!(when("", condition), expected, "{condition}");
    }
    let map = "map $http_user_agent $kind { default ''; '' none; ~*googlebot ''; ~*bot bot; curl/8 tool; }";
    for (condition, expected) in [
        (
            "$kind = bot",
            r#"{ header = { User-Agent = ["~(?i)bot", "!~(?i)^$", "!~(?i)^curl/8$", "!~(?i)googlebot"] } }"#,
        ),
        ("$kind = tool", r#"{ header = { User-Agent = ["~(?i)^curl/8$", "!~(?i)^$"] } }"#),
    ] {
        assert_eq!(when(map, condition), expected, "{condition}");
    }
    let default = "map $http_x $other { default 1; a 0; ~^b 0; }";
    assert_eq!(when(default, "$other"), r#"{ header = { X = ["!~(?i)^a$", "!~^b"] } }"#);
    let referers = converted(
        "server { listen 80; root /srv; location /a/ { valid_referers none blocked server_names *.a.example; \
         if ($invalid_referer) { return 403; } } server_name b.example; }",
    );
    let expected = r#"when = { header = { Referer = ["~(?i)^https?://", "!~(?i)^https?://b\\.example(?:[:/?#]|$)", "!~(?i)^https?://[^/]+\\.a\\.example(?:[:/?#]|$)"] } }"#;
    assert!(referers.toml.contains(expected), "{}", referers.toml);
}

/// Goal: what a condition does is done at its place alone, in front of everything else there.
#[test]
fn cases() {
    becomes(
        "root /srv; location /a/ { if ($request_method = OPTIONS) { add_header X-A b; return 204; } proxy_pass http://b; }",
        "root = \"/srv\"\n[[site.route]]\npath = \"/a/\"\nwhen = { method = \"OPTIONS\" }\nrespond = { status = 204 }\n\
         headers = { add = { X-A = [\"b\"] } }\n[[site.route]]\npath = \"/a/\"\nproxy = { to = \"http://b\", host = \"origin\", \
         body_bytes_max = 1048576 }\n[[site.route]]\nexact = \"/a\"\nredirect = { to = \"/a/$rest\", status = 301 }\n",
    );
    becomes(
        "root /srv; if ($http_x) { return 444; } location = /a { return 200 a; } location ~ b { return 410; }",
        "root = \"/srv\"\n[[site.route]]\nregex = \"^\"\nwhen = { header = { X = [\"~.\", \"!0\"] } }\nrespond = { status = 444 }\n\
         [[site.route]]\nexact = \"/a\"\nwhen = { header = { X = [\"~.\", \"!0\"] } }\nrespond = { status = 444 }\n\
         [[site.route]]\nexact = \"/a\"\nrespond = { status = 200, body = \"a\", media_type = \"text/plain\" }\n\
         [[site.route]]\nregex = \"b\"\nrespond = { status = 410 }\n",
    );
    // Every path would be one of the condition again.
    let rewritten = converted("server { root /srv; if ($cookie_old) { rewrite ^ /old.html last; } }");
    assert!(rewritten.notes.iter().any(|note| note.weight == Weight::LeftOut), "{}", rewritten.toml);
    let switch = converted("server { root /srv; if (-f /srv/down) { return 503; } }");
    assert!(!switch.toml.contains("respond") && switch.notes.len() == 1, "{switch:?}");
    let missing = r"server { root /srv; location ~ \.php$ { if (!-f $document_root$fastcgi_script_name) { return 404; } fastcgi_pass unix:/p; } }";
    assert!(
        converted(missing).notes.iter().all(|note| note.weight == Weight::Remark)
            && tables(missing).contains("scripts"),
        "{}",
        tables(missing)
    );
}
