//! Places that ask for a password.

use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::values::is_constant;
use crate::written::Keys;

/// Directives that say which users a place is for.
pub(super) const PASSWORDS: [&str; 2] = ["auth_basic", "auth_basic_user_file"];

impl Translator<'_> {
    /// The users of a place; `None`: it asks for no password, or is closed.
    pub(super) fn users(&mut self, scope: &Scope<'_>) -> Option<Keys> {
        let password = asked(scope)?;
        let file = file(scope)?;
        let mut keys = Keys::default();
        let realm = password.argument(0);
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
        if is_constant(realm) && !realm.is_empty() && realm.bytes().all(is_plain) {
            keys.set("realm", realm);
        }
        keys.set("file", self.path_of_configuration(file));
        let text = "hashes must be of bcrypt or argon2: `baton check` names others, `baton hash-password` makes new ones";
        self.note(password, Weight::Remark, text);
        Some(keys)
    }
}

/// What asks for a password at a place, and cannot be translated.
pub(super) fn without_counterpart<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    asked(scope).filter(|_| file(scope).is_none())
}

/// What asks for a password at a place where an address is enough.
pub(super) fn beside_addresses<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    let is_choice = scope.word("satisfy") == Some("any") && !scope.all(&["allow", "deny"]).is_empty();
    asked(scope).filter(|_| is_choice)
}

fn asked<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    scope.find("auth_basic").filter(|password| password.argument(0) != "off")
}

fn file<'t>(scope: &Scope<'t>) -> Option<&'t str> {
    scope.word("auth_basic_user_file").filter(|file| is_constant(file) && !file.is_empty())
}
