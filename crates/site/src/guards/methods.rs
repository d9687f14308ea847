//! Which methods a route takes.

/// Methods by their names. `GET` brings `HEAD` along, as nginx has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedMethods {
    names: Vec<String>,
    /// Value of `Allow` where an application or an origin answers.
    all: String,
    /// Value of `Allow` where the server itself answers: files, fixed answers.
    own: String,
}

impl AllowedMethods {
    /// These methods, by names as they stand in requests.
    pub fn new(names: &[String]) -> Self {
        let mut names = names.to_vec();
        if names.iter().any(|name| name == "GET") && !names.iter().any(|name| name == "HEAD") {
            names.push("HEAD".into());
        }
        let own = names.iter().filter(|name| OWN.contains(&name.as_str())).cloned();
        let (all, own) = (names.join(", "), own.collect::<Vec<_>>().join(", "));
        Self { names, all, own }
    }

    /// Whether the method is one of them. Methods are case-sensitive.
    pub fn contains(&self, method: &[u8]) -> bool {
        self.names.iter().any(|name| name.as_bytes() == method)
    }

    /// Value of `Allow` for what is refused here.
    pub fn all(&self) -> &str {
        &self.all
    }

    /// Value of `Allow` for what the server itself answers.
    pub fn own(&self) -> &str {
        &self.own
    }
}

/// Methods that the server itself answers.
const OWN: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_brings_head_along() {
        let methods = AllowedMethods::new(&["GET".into(), "POST".into()]);
        assert!(methods.contains(b"HEAD") && methods.contains(b"POST"));
        assert!(!methods.contains(b"get") && !methods.contains(b"OPTIONS") && !methods.contains(b""));
        assert_eq!((methods.all(), methods.own()), ("GET, POST, HEAD", "GET, HEAD"));
    }
}
