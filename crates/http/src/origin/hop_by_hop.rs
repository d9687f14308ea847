//! Fields that end at this hop (RFC 9110 section 7.6.1).

use crate::fields::{is_same_field, list_members};

/// Whether a field is about a connection by its name alone.
pub(super) fn is_of_the_connection(name: &[u8]) -> bool {
    let is = |other: &str| is_same_field(name, other);
    match name.len() {
        2 => is("TE"),
        7 => is("Upgrade"),
        10 => is("Connection") || is("Keep-Alive"),
        16 => is("Proxy-Connection"),
        17 => is("Transfer-Encoding"),
        18 => is("Proxy-Authenticate"),
        19 => is("Proxy-Authorization"),
        25 => is("Proxy-Authentication-Info"),
        _ => false,
    }
}

/// The fields that `Connection` names, besides those that are known.
#[derive(Debug, Default)]
pub(super) struct NominatedFields<'a> {
    /// Values of Connection with other options than `close` and `keep-alive`: nearly always none.
    values: Vec<&'a [u8]>,
}

impl<'a> NominatedFields<'a> {
    /// The next Connection field. Calls `option` with every option.
    pub(super) fn note(&mut self, value: &'a [u8], mut option: impl FnMut(&'a [u8])) {
        let mut names_fields = false;
        for member in list_members(value) {
            option(member);
            names_fields |=
                !member.eq_ignore_ascii_case(b"close") && !member.eq_ignore_ascii_case(b"keep-alive");
        }
        if names_fields {
            self.values.push(value);
        }
    }

    /// Whether no field is named.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether the field ends here.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.values.iter().any(|value| list_members(value).any(|member| is_same_field(member, name)))
    }
}
