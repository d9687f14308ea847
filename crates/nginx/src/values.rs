//! Values as nginx writes them.

use baton_http::{LoneDollar, OfNginx, text_of_parts, text_parts};

/// Milliseconds of a time such as `60`, `1h30m` or `500ms`; a number alone has this unit.
pub(crate) fn milliseconds(text: &str, alone: u64) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let units = [
            ("ms", 1),
            ("s", 1000),
            ("m", 60_000),
            ("h", 3_600_000),
            ("d", DAY),
            ("w", 7 * DAY),
            ("M", 30 * DAY),
            ("y", 365 * DAY),
        ];
        let unit = units.iter().find_map(|(unit, length)| Some((rest.strip_prefix(unit)?, *length)));
        let (behind, length) = match unit {
            Some(unit) => unit,
            None if rest.is_empty() => (rest, alone),
            None => return None,
        };
        rest = behind.trim_start();
        total = total.checked_add(number.checked_mul(length)?)?;
    }
    (!text.is_empty()).then_some(total)
}

const DAY: u64 = 86_400_000;

/// Bytes of a size such as `8k` or `10m`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Whether a text has no variables.
pub(crate) fn is_constant(text: &str) -> bool {
    !text.contains('$')
}

/// The value of a field with Baton's variables in place of those of nginx; `None`: one has no counterpart.
pub(crate) fn field_value(text: &str) -> Option<String> {
    let is_same = |of_nginx: &&OfNginx| of_nginx.is_same;
    translated(text, |name| Some(OfNginx::named(name).filter(is_same)?.here.to_owned()))
}

/// A text with other variables; `None`: one has no counterpart.
pub(crate) fn translated(text: &str, counterpart: impl Fn(&str) -> Option<String>) -> Option<String> {
    let parts = text_parts(text, |name| counterpart(name).ok_or(None::<LoneDollar>));
    Some(text_of_parts(&parts.ok()?))
}

/// The endings of the scripts whose names a regular expression matches, such as `\.php$` or `\.(pl|cgi)$`; none: it is about
/// other paths.
pub(crate) fn endings_of_scripts(pattern: &str) -> Vec<String> {
    if pattern.contains("\\.php") {
        return vec![".php".to_owned()];
    }
    let names = pattern.strip_prefix("\\.").and_then(|names| names.strip_suffix('$')).unwrap_or_default();
    let names = names.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(names);
    let is_plain = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match names.split('|').all(is_plain) {
        true => names.split('|').map(|name| format!(".{name}")).collect(),
        false => Vec::new(),
    }
}

/// Whether a regular expression matches the names of PHP scripts, in one of the forms that nginx's users write.
pub(crate) fn is_of_php_scripts(pattern: &str) -> bool {
    const FORMS: &[&str] = &[
        r"\.php$",
        r"\.php",
        r"\.php(/|$)",
        r"\.php($|/)",
        r"\.php(?:$|/)",
        r"\.php(?:/|$)",
        r"[^/]\.php(/|$)",
        r"[^/]\.php($|/)",
        r"^.+\.php$",
        r"^.+\.php(/|$)",
        r"^.+\.php",
        r"^(.+\.php)(.*)$",
        r"^(.+\.php)(/.*)?$",
        r".*\.php$",
    ];
    FORMS.contains(&pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        for (text, expected) in [
            ("60", Some(60_000)),
            ("60s", Some(60_000)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("500ms", Some(500)),
            ("30d", Some(2_592_000_000)),
            ("1M", Some(2_592_000_000)),
            ("", None),
            ("x", None),
            ("5x", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("999999999999999y", None),
        ] {
            assert_eq!(milliseconds(text, 1000), expected, "{text}");
        }
        for (text, expected) in [
            ("8k", Some(8192)),
            ("10m", Some(10 << 20)),
            ("2G", Some(2 << 30)),
            ("7", Some(7)),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn scripts_of_a_pattern() {
        for (pattern, expected) in [
            (r"\.php$", ".php"),
            (r"^/(index|status)\.php(/|$)", ".php"),
            (r"\.(pl|cgi)$", ".pl .cgi"),
            (r"\.pl$", ".pl"),
            (r"^/app/", ""),
            (r"\.$", ""),
            (r"\.(a.b)$", ""),
        ] {
            assert_eq!(endings_of_scripts(pattern).join(" "), expected, "{pattern}");
        }
    }
}
