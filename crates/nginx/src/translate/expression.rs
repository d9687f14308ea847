//! Regular expressions of locations: which paths they could match, and the same for some of these paths alone.

use std::borrow::Cow;

/// A text as a regular expression that matches it alone.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        if r".+*?()|[]{}^$\#&-~".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

/// Whether an expression could match a path that begins so.
pub(super) fn may_match(expression: &str, prefix: &str) -> bool {
    let Some(Anchored { flags, start, .. }) = anchored(expression) else { return true };
    let fold = |text: &str| if flags.is_empty() { text.to_owned() } else { text.to_lowercase() };
    let (start, prefix) = (fold(&start), fold(prefix));
    start.starts_with(&prefix) || prefix.starts_with(&start)
}

/// The expression for paths that begin so, and no others; `None`: that cannot be said.
pub(super) fn restricted<'e>(expression: &'e str, prefix: &str) -> Option<Cow<'e, str>> {
    let Some(Anchored { flags, start, rest }) = anchored(expression) else {
        let (flags, text) = flags_of(expression);
        return below(flags, prefix, text).map(Cow::from);
    };
    if start.starts_with(prefix) && flags.is_empty() {
        return Some(expression.into());
    }
    if start.to_lowercase().starts_with(&prefix.to_lowercase()) && start.is_char_boundary(prefix.len()) {
        let behind = format!("{}{rest}", quoted(&start[prefix.len()..]));
        return Some(format!("^{}(?i:{behind})", quoted(prefix)).into());
    }
    let behind = ["(?:/.*)?", "(.*)", "(.+)", ".*", ".+"].iter().find_map(|any| rest.strip_prefix(any))?;
    let is_start = may_match(&format!("{flags}^{}", quoted(&start)), prefix);
    let (own, behind) = flags_of(behind);
    below(if own.is_empty() { flags } else { own }, prefix, behind).filter(|_| is_start).map(Cow::from)
}

/// An expression without what Baton's lack, which matches the same paths and more: no condition on what is around, and any text
/// for what a group has matched before.
pub(super) fn widened(expression: &str) -> String {
    let (mut rest, mut out) = (expression, String::new());
    while let Some(next) = rest.chars().next() {
        let looks_around = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| rest.starts_with(start));
        let taken = match rest.as_bytes() {
            _ if looks_around => group_len(rest),
            [b'\\', b'1'..=b'9', ..] => {
                out.push_str(".*");
                2
            }
            [b'\\', second, ..] if second.is_ascii() => {
                out.push_str(&rest[..2]);
                2
            }
            _ => {
                out.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// The length of the group that a text begins with, or of all of it.
fn group_len(text: &str) -> usize {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => {}
            b'(' => depth += 1,
            b')' if depth == 1 => return at + 1,
            b')' => depth -= 1,
            _ => {}
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    text.len()
}

/// An expression that may match anywhere, for paths that begin so: behind the prefix, or from within it on. `None`: that would
/// need a closer look at the expression.
fn below(flags: &str, prefix: &str, text: &str) -> Option<String> {
    let (start, rest) = if is_one(text) { literal(text) } else { (String::new(), text) };
    let fold = |text: &str| if flags.is_empty() { text.to_owned() } else { text.to_ascii_lowercase() };
    let (folded, folded_prefix) = (fold(&start), fold(prefix));
    let mut from_within = Vec::new();
    for (at, _) in prefix.char_indices() {
        let tail = &folded_prefix[at..];
        if folded.starts_with(tail) && (folded.len() > tail.len() || !rest.is_empty()) {
            from_within.push(format!("{}{rest}", quoted(&start[tail.len()..])));
        } else if !start.is_empty() && tail.starts_with(&folded) {
            // All of the expression is in the prefix.
            return rest.is_empty().then(|| format!("^{}", quoted(prefix)));
        }
    }
    // The slash of the prefix may be what it begins with.
    let begins_anyhow = text.starts_with(['(', '[', '.']) || from_within.len() == 1 && start.starts_with('/');
    if let Some(bare) = prefix.strip_suffix('/').filter(|_| begins_anyhow) {
        return Some(format!("^{}(?:/.*)?{}", quoted(bare), folding(flags, text)));
    }
    let anywhere = format!(".*{}", folding(flags, text));
    Some(match from_within.is_empty() {
        true => format!("^{}{anywhere}", quoted(prefix)),
        false => {
            let from_within: Vec<_> = from_within.iter().map(|rest| folding(flags, rest)).collect();
            format!("^{}(?:{anywhere}|{})", quoted(prefix), from_within.join("|"))
        }
    })
}

/// An expression with these flags that stands within another one: a prefix is in its very case.
fn folding<'t>(flags: &str, text: &'t str) -> Cow<'t, str> {
    match (flags, is_one(text)) {
        ("", true) => text.into(),
        ("", false) => format!("(?:{text})").into(),
        _ => format!("(?i:{text})").into(),
    }
}

/// The text that an expression begins with, and what is behind it.
fn literal(expression: &str) -> (String, &str) {
    let (mut start, mut rest) = (String::new(), expression);
    loop {
        let mut characters = rest.chars();
        let character = match characters.next() {
            Some('\\') => characters.next().filter(|escaped| !escaped.is_ascii_alphanumeric()),
            plain => plain.filter(|character| !r".+*?()|[]{}^$".contains(*character)),
        };
        let behind = characters.as_str();
        match character {
            Some(character) if !behind.starts_with(['*', '?', '+', '{']) => start.push(character),
            _ => return (start, rest),
        }
        rest = behind;
    }
}

/// An expression that matches from the start of a path on.
struct Anchored<'e> {
    flags: &'e str,
    /// What all of the paths begin with.
    start: String,
    /// What is behind that in the expression.
    rest: &'e str,
}

/// `None`: it may match anywhere.
fn anchored(expression: &str) -> Option<Anchored<'_>> {
    let (flags, text) = flags_of(expression);
    let (start, rest) = literal(text.strip_prefix('^').filter(|text| is_one(text))?);
    Some(Anchored { flags, start, rest })
}

/// Whether all alternatives of an expression are within its groups.
fn is_one(text: &str) -> bool {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for character in text.chars() {
        match character {
            _ if is_escaped => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return false,
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    true
}

fn flags_of(expression: &str) -> (&str, &str) {
    let group = expression.strip_prefix("(?i:").filter(|_| group_len(expression) == expression.len());
    match expression.strip_prefix("(?i)").or(group.and_then(|group| group.strip_suffix(')'))) {
        Some(text) => ("(?i)", text),
        None => ("", expression),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_expression_could_match() {
        for (expression, prefix, expected) in [
            (r"\.php$", "/a/", true),
            (r"^/a/.*\.php$", "/a/", true),
            (r"^/a/.*\.php$", "/b/", false),
            (r"^/a/b/x", "/a/", true),
            (r"^/a/", "/a/b/", true),
            (r"^/ab?/", "/a/", true),
            (r"^/ab?/", "/ac/", true),
            (r"(?i)^/A/x", "/a/", true),
            (r"^/a|x$", "/b/", true),
            (r"^/(a|b)/", "/c/", true),
            (r"^/a\.b/", "/a.b/", true),
            (r"^/a\d", "/b", false),
        ] {
            assert_eq!(may_match(expression, prefix), expected, "{expression} {prefix}");
        }
    }

    #[test]
    fn what_baton_s_expressions_lack_is_widened() {
        for (expression, expected) in [
            (r"^/(?!open/)x", "^/x"),
            (r"/(?!a(b|c)\))y(?=z)$", "/y$"),
            (r"(?<!a)b", "b"),
            (r"^/(a|b)/\1\.php$", r"^/(a|b)/.*\.php$"),
            (r"(?:x)\\1(?i)", r"(?:x)\\1(?i)"),
            ("(?!", ""),
            ("é(?=é", "é"),
        ] {
            assert_eq!(widened(expression), expected, "{expression}");
        }
    }

    #[test]
    fn expressions_for_a_part_of_the_paths() {
        for (expression, prefix, expected) in [
            (r"\.php$", "/a/", Some(r"^/a/.*\.php$")),
            (r"/\.", "/a/", Some(r"^/a(?:/.*)?/\.")),
            (r"(?i)\.(a|b)$", "/a", Some(r"^/a.*(?i:\.(a|b)$)")),
            (r"^/a/x$", "/a/", Some(r"^/a/x$")),
            (r"x|y", "/a/", Some(r"^/a/.*(?:x|y)")),
            ("/c", "/a/c", Some("^/a/c")),
            ("b$", "/a/b", Some("^/a/b(?:.*b$|$)")),
            ("/b/c", "/a/b", Some("^/a/b(?:.*/b/c|/c)")),
            ("(?i)/B/x", "/a/b", Some("^/a/b(?:.*(?i:/B/x)|(?i:/x))")),
            ("/a/.*x", "/b/a/", Some("^/b/a/(?:.*/a/.*x|.*x|a/.*x)")),
            ("a/.x", "/b/a/c/", None),
            (r"^/.*\.php$", "/a/", Some(r"^/a/.*\.php$")),
            (r"^/a/.*\.php$", "/a/b/", Some(r"^/a/b/.*\.php$")),
            (r"(?i)^/A/x.*y$", "/a/", Some(r"^/a/(?i:x.*y$)")),
            (r"(?i)^/.*\.A$", "/a/", Some(r"^/a/.*(?i:\.A$)")),
            ("^(?:/.*)?(?i:/c)", "/a/c/", Some("^/a/c/")),
            (r"^/[a-z]+/x$", "/a/", None),
        ] {
            assert_eq!(restricted(expression, prefix).as_deref(), expected, "{expression} {prefix}");
        }
    }
}
