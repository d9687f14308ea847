//! Header fields as variables (RFC 3875 section 4.1.18).

use baton_http::is_same_field;

use crate::params::push_lengths;

/// Appends the fields of a request as `HTTP_*` variables and `CONTENT_TYPE`. Fields of [one name](is_same_field) become one
/// variable, joined in order with `, `, cookies with `; ` (RFC 9110 section 5.3, RFC 9113 section 8.2.3).
///
/// Left out are:
/// - `Host` and `Content-Length`, which [`Variables`](super::Variables) contains as the server understood them;
/// - `Transfer-Encoding`, which has been undone;
/// - `Proxy`, which as `HTTP_PROXY` would make HTTP clients inside the application use the attacker's proxy;
/// - names with anything but letters, digits, `-` and `_`. The caller leaves out those with `_`, unless they are wanted: as a
///   variable, `X_Real` is the same as `X-Real`.
pub fn push_fields<'a, F>(out: &mut Vec<u8>, fields: F)
where
    F: Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
{
    for (index, (name, value)) in fields.clone().enumerate() {
        let same = move |field: &(&[u8], &[u8])| is_same_field(field.0, name);
        if !is_told(name) || fields.clone().take(index).any(|field| same(&field)) {
            continue;
        }
        let others = fields.clone().skip(index + 1).filter(same).map(|field| field.1);
        let separator: &[u8] = if is_same_field(name, b"Cookie") { b"; " } else { b", " };
        let joined_len = others.clone().map(|other| separator.len() + other.len()).sum::<usize>();
        push_name(out, name, value.len() + joined_len);
        out.extend_from_slice(value);
        for other in others {
            out.extend_from_slice(separator);
            out.extend_from_slice(other);
        }
    }
}

/// The beginning of a pair up to its value.
fn push_name(out: &mut Vec<u8>, name: &[u8], value_len: usize) {
    if is_same_field(name, b"Content-Type") {
        push_lengths(out, CONTENT_TYPE.len(), value_len);
        out.extend_from_slice(CONTENT_TYPE);
        return;
    }
    push_lengths(out, PREFIX.len() + name.len(), value_len);
    out.extend_from_slice(PREFIX);
    out.extend(name.iter().map(|byte| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    }));
}

fn is_told(name: &[u8]) -> bool {
    let is = |known: &str| is_same_field(name, known.as_bytes());
    let spells_a_variable =
        name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(*byte, b'-' | b'_'));
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

/// The prefix of a request's fields among the variables.
const PREFIX: &[u8] = b"HTTP_";

/// The one that has none.
const CONTENT_TYPE: &[u8] = b"CONTENT_TYPE";
