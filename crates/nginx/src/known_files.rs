//! Files that come with nginx, its packages and certbot, for machines on which these are not installed.

/// The text of a file that is known by its name; empty where Baton does by itself what it says.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(match name {
        "mime.types"
        | "fastcgi_params"
        | "fastcgi.conf"
        | "scgi_params"
        | "uwsgi_params"
        | "koi-utf"
        | "koi-win"
        | "win-utf"
        | "options-ssl-nginx.conf" => "",
        "fastcgi-php.conf" => "try_files $fastcgi_script_name =404; fastcgi_index index.php;",
        "proxy_params" => {
            "proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;"
        }
        "snakeoil.conf" => {
            "ssl_certificate /etc/ssl/certs/ssl-cert-snakeoil.pem; \
             ssl_certificate_key /etc/ssl/private/ssl-cert-snakeoil.key;"
        }
        _ => return None,
    })
}
