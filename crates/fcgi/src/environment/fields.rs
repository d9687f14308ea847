//! Header fields as variables (RFC 3875 section 4.1.18).

use crate::params::{push_joined, push_joined_named};

/// Appends the fields of a request as `HTTP_*` variables and `CONTENT_TYPE`. Fields of one name become one
/// variable, joined in order with `, `, cookies with `; ` (RFC 9110 section 5.3, RFC 9113 section 8.2.3).
///
/// Left out are:
/// - `Host` and `Content-Length`, which [`Variables`](super::Variables) tells as the server understood them;
/// - `Transfer-Encoding`, which has been undone;
/// - `Proxy`, which as `HTTP_PROXY` would make HTTP clients inside the application use the attacker's proxy;
/// - names with anything but letters, digits and `-`: as a variable `X_Real` would pass for `X-Real`.
pub fn push_fields<'a, F>(out: &mut Vec<u8>, fields: F)
where
    F: Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
{
    for (index, (name, _)) in fields.clone().enumerate() {
        let same = move |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name);
        if !is_told(name) || fields.clone().take(index).any(|field| same(&field)) {
            continue;
        }
        let separator: &[u8] = if name.eq_ignore_ascii_case(b"Cookie") { b"; " } else { b", " };
        let values = fields.clone().skip(index).filter(same).enumerate();
        let parts = values.flat_map(|(place, field)| [if place == 0 { b"" } else { separator }, field.1]);
        push_variable(out, name, parts);
    }
}

fn push_variable<'a, P>(out: &mut Vec<u8>, name: &[u8], parts: P)
where
    P: Iterator<Item = &'a [u8]> + Clone,
{
    if name.eq_ignore_ascii_case(b"Content-Type") {
        push_joined(out, b"CONTENT_TYPE", parts);
        return;
    }
    let spelt = |index: usize| match PREFIX.get(index) {
        Some(byte) => *byte,
        None => match name[index - PREFIX.len()] {
            b'-' => b'_',
            byte => byte.to_ascii_uppercase(),
        },
    };
    push_joined_named(out, (0..PREFIX.len() + name.len()).map(spelt), parts);
}

fn is_told(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let spells_a_variable = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    spells_a_variable
        && !name.is_empty()
        && match name.len() {
            4 => !is("Host"),
            5 => !is("Proxy"),
            14 => !is("Content-Length"),
            17 => !is("Transfer-Encoding"),
            _ => true,
        }
}

/// What tells the fields of a request from all other variables.
const PREFIX: &[u8] = b"HTTP_";
