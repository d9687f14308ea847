//! `basic_auth`: users and their passwords.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_password::{Hash, Users};
use baton_site::guards;

use super::error::Complaint;
use super::kind::{Kind, Or, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{FilePath, Text, TextOf, Wrong};

settings! {
    /// Users that have to say their name and password (RFC 7617). Without TLS, everyone on the way can read them.
    BasicAuth in "site.basic_auth" {
        /// What the client is asked for: browsers show it, and use one password for all of a realm.
        realm: String = "restricted".into(), REALM;
        /// Hashes by user, of bcrypt or argon2, as `baton hash-password` makes them: `{ ada = "$2y$12$…" }`.
        users: Vec<(String, Hash)> = Vec::new(), UsersKind;
        /// A `.htpasswd` file with more users: a line `name:hash` for each. It is read when the configuration is loaded.
        file: Option<PathBuf> = None, Or("off", FilePath);
    }
}

/// Such a table, with at least one user.
pub(crate) struct BasicAuthKind;

impl Kind for BasicAuthKind {
    type Value = BasicAuth;

    const SHOWN: Shown = Inline::<BasicAuth>::SHOWN;

    fn accepted(&self) -> String {
        Inline::<BasicAuth>::new().accepted()
    }

    fn schema(&self) -> Schema {
        Inline::<BasicAuth>::new().schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<BasicAuth> {
        let auth = Inline::<BasicAuth>::new().read(node, reading)?;
        if auth.users.is_empty() && auth.file.is_none() {
            let complaint =
                reading.complaint("lets no user in").at(node.span(), "has neither `users` nor `file`");
            reading.complain(complaint.help("add a user: `baton hash-password NAME` prints the line"));
            return None;
        }
        Some(auth)
    }

    fn write(&self, value: &BasicAuth) -> toml::Value {
        Inline::<BasicAuth>::new().write(value)
    }
}

impl BasicAuth {
    /// What the engine makes of it, with the content of the file.
    ///
    /// # Errors
    /// The file has a line that is not accepted.
    pub(crate) fn plan(&self, file: Option<&[u8]>) -> io::Result<Arc<guards::BasicAuth>> {
        let mut users = self.users.clone();
        if let Some((path, bytes)) = self.file.as_ref().zip(file) {
            users.extend(users_of(path, bytes)?);
        }
        Ok(Arc::new(guards::BasicAuth::new(&self.realm, Users::new(users))))
    }
}

/// The users of a file.
///
/// # Errors
/// It has none, or a line that is not accepted.
pub(crate) fn users_of(path: &Path, bytes: &[u8]) -> io::Result<Vec<(String, Hash)>> {
    let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
    let users = Users::read_lines(text).map_err(|refused| {
        let why = match &refused.why {
            Some(why) => format!("the hash of {}: {why}", refused.user),
            None => "expected `name:hash`".into(),
        };
        io::Error::other(format!("line {}: {why}", refused.line))
    })?;
    match users.is_empty() {
        true => Err(io::Error::other(format!("{} has no users", path.display()))),
        false => Ok(users),
    }
}

/// Hashes by name.
struct UsersKind;

impl Kind for UsersKind {
    type Value = Vec<(String, Hash)>;

    const SHOWN: Shown = Shown::Nothing;

    fn accepted(&self) -> String {
        "a table of hashes by user: { NAME = \"$2y$…\" }".into()
    }

    fn schema(&self) -> Schema {
        Schema::table_of(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<(String, Hash)>> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let mut users = Some(Vec::new());
        for (name, value) in entries {
            if name.get_ref().is_empty() || name.get_ref().contains(':') {
                reading.refuse(name.span(), "has a bad name", "a name is not empty and has no colon");
                users = None;
            }
            let hash = Text.read(value, reading).and_then(|text| {
                let refused = |why: baton_password::RefusedHash| {
                    let title = format!("the password of {} is not protected", name.get_ref());
                    let complaint = Complaint::new(title).at(value.span(), why.to_string());
                    let remedy = format!(
                        "`baton hash-password {}` asks for the password and prints the line",
                        name.get_ref()
                    );
                    reading.complain(complaint.help(remedy));
                };
                Hash::parse(&text).map_err(refused).ok()
            });
            users = users.zip(hash).map(|(mut users, hash)| {
                users.push((name.get_ref().clone(), hash));
                users
            });
        }
        users
    }

    fn write(&self, value: &Vec<(String, Hash)>) -> toml::Value {
        let user = |(name, hash): &(String, Hash)| (name.clone(), hash.as_str().into());
        toml::Value::Table(value.iter().map(user).collect())
    }
}

/// The name of a realm, which stands in quotes.
const REALM: TextOf = TextOf {
    accepted: "a name without quotes and backslashes",
    check: |name| match name.contains(['"', '\\']) || !name.is_ascii() {
        true => Err(Wrong::new(
            "has other characters than it may have",
            "expected ASCII without quotes and backslashes",
        )),
        false => Ok(name),
    },
};
