//! How the answers of an application reach a browser, and why by no better transport, for people.

use super::application::{Application, Target, Transport};

/// How a browser comes to a route.
#[derive(Clone, Copy, Debug)]
pub struct BrowserArrival<'a> {
    /// Whether it speaks HTTP/2: over TLS, where the server offers it.
    pub is_http2: bool,
    /// Over TLS: why the kernel does not seal what an application writes. `None`: it does, or nothing is sealed.
    pub unsealed: Option<&'a str>,
    /// Whether the shared cache answers.
    pub is_cached: bool,
    /// Whether bodies are digested.
    pub is_digested: bool,
    /// Whether some responses are compressed on the fly.
    pub is_compressed: bool,
}

/// The transport of a route's application to a browser. `None`: there is only one.
pub fn browser_transport(
    (is_fastcgi, application): (bool, &Application),
    arrival: BrowserArrival<'_>,
) -> Option<String> {
    let is_automatic = match application.transport {
        _ if !is_fastcgi => return None,
        Transport::Unix | Transport::Inet => return None,
        Transport::Shm => return Some("`shm` with a library in the application, else `unix`".into()),
        Transport::Auto if matches!(application.to, Some(Target::Tcp(_) | Target::Host(..))) => {
            return Some("`inet`: only a Unix socket carries descriptors".into());
        }
        Transport::Auto => true,
        Transport::PassFd => false,
    };
    let is_started = application.to.is_none();
    let users = &application.passfd_users[..];
    let mut obstacles = Vec::new();
    if arrival.is_cached {
        obstacles.push("the shared cache has to see what the application answers".to_owned());
    }
    if arrival.is_digested {
        obstacles.push("`etag = \"digest\"` has to see the body".into());
    }
    if arrival.is_http2 {
        obstacles.push("browsers speak HTTP/2 here, where many responses share a connection".into());
    }
    if let Some(why) = arrival.unsealed.filter(|_| !arrival.is_http2) {
        obstacles.push(format!("the kernel does not seal records: {why}"));
    }
    if is_automatic && !is_started && users.is_empty() {
        obstacles.push("Baton has not started it, and `passfd_users` is empty".into());
    }
    if !obstacles.is_empty() {
        let why = obstacles.join("; ");
        return Some(format!("`shm` with a library in the application, else `unix`; no `passfd`: {why}"));
    }
    let condition = match is_automatic && !is_started {
        true => format!(" only if {} listens at its socket (`passfd_users`)", users.join(" or ")),
        false => String::new(),
    };
    let coded = if arrival.is_compressed { "; what is compressed goes through the server" } else { "" };
    Some(format!("`passfd`{condition}, with a library in the application, else `unix`{coded}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const CLEAR: BrowserArrival<'_> = BrowserArrival {
        is_http2: false,
        unsealed: None,
        is_cached: false,
        is_digested: false,
        is_compressed: true,
    };

    fn told(application: &str, arrival: BrowserArrival<'_>) -> String {
        let text =
            format!("[[site]]\nroot = '/'\n[[site.route]]\npath = '/a'\nfastcgi = {{ {application} }}\n");
        let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
        let application = config.sites[0].routes[0].settings.application().expect("one");
        browser_transport(application, arrival).unwrap_or_else(|| "only one".into())
    }

    #[test]
    fn each_obstacle_is_named() {
        let started = "command = ['/bin/true']";
        let listens = "to = 'unix:/a', passfd_users = ['root']";
        for (application, arrival, expected) in [
            (started, CLEAR, "`passfd`, with a library in the application, else `unix`; what is compressed"),
            (
                started,
                BrowserArrival { is_compressed: false, ..CLEAR },
                "`passfd`, with a library in the application, else `unix`",
            ),
            (listens, CLEAR, "`passfd` only if root listens at its socket (`passfd_users`), with a library"),
            ("to = 'unix:/a'", CLEAR, "no `passfd`: Baton has not started it, and `passfd_users` is empty"),
            ("to = 'unix:/a', transport = 'passfd'", CLEAR, "`passfd`, with a library"),
            (
                started,
                BrowserArrival { is_http2: true, unsealed: Some("why"), ..CLEAR },
                "no `passfd`: browsers speak HTTP/2 here",
            ),
            (
                started,
                BrowserArrival { unsealed: Some("it is old"), ..CLEAR },
                "the kernel does not seal records: it is old",
            ),
            (
                listens,
                BrowserArrival { is_cached: true, ..CLEAR },
                "no `passfd`: the shared cache has to see",
            ),
            (
                started,
                BrowserArrival { is_digested: true, ..CLEAR },
                "no `passfd`: `etag = \"digest\"` has to see the body",
            ),
            ("to = '127.0.0.1:9000'", CLEAR, "`inet`: only a Unix socket carries descriptors"),
            (
                "to = 'unix:/a', transport = 'shm'",
                CLEAR,
                "`shm` with a library in the application, else `unix`",
            ),
            ("to = 'unix:/a', transport = 'unix'", CLEAR, "only one"),
        ] {
            let told = told(application, arrival);
            assert!(told.contains(expected), "{application}: {told}");
        }
    }
}
