//! The path of a route: a prefix, written as in a URL. Other servers have globs and regular expressions in this place;
//! taken as they are they would match nothing, and protect nothing. So they are refused, and the complaint says under which
//! key they are written here.

use std::fmt::Write as _;

use baton_http::decode_path;

use super::error::Complaint;
use super::kind::{Kind, Reading};
use super::raw::Node;
use super::shown::Shown;
use super::text::Text;

/// The path of a route, kept decoded: requests are compared in that form.
pub(crate) struct RoutePath;

impl Kind for RoutePath {
    type Value = String;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a path that begins with `/`".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let text = Text.read(node, reading)?;
        if let Some(pattern) = Pattern::find(&text) {
            let complaint = reading.complaint("is a prefix, not a pattern").at(node.span(), pattern.label());
            let complaint = pattern.remedies().into_iter().fold(complaint, Complaint::help);
            reading.complain(complaint);
            return None;
        }
        let refusal = match decode(&text) {
            Ok(path) => return Some(path),
            Err(refusal) => refusal,
        };
        match refusal {
            _ if !text.starts_with('/') => {
                reading.refuse(node.span(), "does not begin with `/`", format!("expected \"/{text}\""));
            }
            Unmatched::Never(why) => reading.refuse(node.span(), "is the path of no request", why),
            Unmatched::Plain(plain) => {
                let label = format!("expected \"{plain}\": this is how paths of requests are compared");
                reading.refuse(node.span(), "is the path of no request", label);
            }
        }
        None
    }

    fn write(&self, value: &String) -> toml::Value {
        let mut written = String::with_capacity(value.len());
        for character in value.chars() {
            if character == '%'
                || character == '+'
                || character == '$'
                || PATTERN_CHARACTERS.contains(character)
            {
                escape(character, &mut written);
            } else {
                written.push(character);
            }
        }
        written.into()
    }
}

/// Why no request has such a path.
enum Unmatched {
    Never(String),
    /// The path would be this one.
    Plain(String),
}

/// The path as requests have it when they are compared with it.
fn decode(text: &str) -> Result<String, Unmatched> {
    let mut decoded = Vec::new();
    decode_path(text.as_bytes(), &mut decoded).map_err(|refusal| Unmatched::Never(refusal.to_string()))?;
    let path = String::from_utf8(decoded).map_err(|_| Unmatched::Never("it is not UTF-8".into()))?;
    let path = format!("/{path}");
    // A `.`, `..` or empty segment is gone now.
    let segments = |path: &str| path.split('/').count();
    if segments(&path) == segments(text) { Ok(path) } else { Err(Unmatched::Plain(path)) }
}

/// Characters that begin a pattern. Of them, only `*` may stand unencoded in a URL.
const PATTERN_CHARACTERS: &str = "*?[]{}|^\\<>";

/// Characters that globs do not have.
const REGEX_CHARACTERS: [char; 11] = ['\\', '(', ')', '{', '}', '<', '>', '|', '^', '$', '+'];

/// What is a pattern elsewhere.
struct Pattern<'a> {
    /// The path without what makes it a pattern as a whole (`~`, `^`, `=`).
    path: &'a str,
    /// What stands in front of that.
    modifier: &'a str,
    /// The first part that a pattern would give a meaning; empty: only the modifier in front did.
    found: &'a str,
}

impl<'a> Pattern<'a> {
    /// Looks for globs, regular expressions, templates (`{id}`) and the modifiers of nginx's locations.
    fn find(text: &'a str) -> Option<Self> {
        let path = text.trim_start_matches(['~', '^', '=', ' ']);
        let path = if path.len() < text.len() { path.trim_start_matches(['*', ' ', '^']) } else { path };
        let modifier = &text[..text.len() - path.len()];
        let has_modifier = path.len() < text.len() && (path.starts_with('/') || !text.starts_with('*'));
        let at = path.char_indices().find_map(|(at, character)| {
            let rest = &path[at..];
            let is_anchor = character == '$' && matches!(rest, "$" | "$)");
            let repeats = [".+", ")+"].iter().any(|repeated| rest.starts_with(repeated));
            match (PATTERN_CHARACTERS.contains(character) || is_anchor, repeats) {
                (true, _) => Some(at..at + character.len_utf8()),
                (false, true) => Some(at..at + 2),
                (false, false) => None,
            }
        });
        match at {
            Some(range) => Some(Self { path, modifier, found: &path[range] }),
            None if has_modifier => Some(Self { path, modifier, found: "" }),
            None => None,
        }
    }

    fn label(&self) -> String {
        match self.found {
            "" => "what stands in front of the path has no meaning here".into(),
            found => format!("`{found}` would stand for itself only"),
        }
    }

    /// What to write instead.
    fn remedies(&self) -> Vec<String> {
        let before = self.path.split(self.found).next().filter(|_| !self.found.is_empty());
        let prefix = match before {
            None => self.path,
            Some(before) => before.rsplit_once('/').map_or("", |(folder, _)| folder),
        };
        let is_all = self.path.chars().all(|character| "/*.?+()$".contains(character));
        let prefix = if is_all { "/" } else { prefix.trim_end_matches('/') };
        let mut remedies = vec![self.other_key()];
        if prefix.starts_with('/') {
            remedies.push(format!("or write \"{prefix}\", which holds for everything below it"));
        }
        if let Some(ending) = self.ending() {
            remedies.push(format!(
                "for files by their endings, `scripts = [\"{ending}\"]` says which an application runs"
            ));
        }
        if let Some(character) = self.found.chars().next_back() {
            let mut escaped = String::new();
            escape(character, &mut escaped);
            remedies.push(format!("a `{character}` in the path of a URL is written `{escaped}`"));
        }
        remedies
    }

    /// The pattern as it is written here.
    fn other_key(&self) -> String {
        let (path, modifier) = (self.path, self.modifier.trim());
        let anchor = if modifier.ends_with('^') { "^" } else { "" };
        let is_glob = !path.contains(REGEX_CHARACTERS) && !path.contains(".*");
        match modifier {
            "=" => format!("write `exact = \"{path}\"` for this path alone"),
            "^~" => format!("write `path = \"{path}\"` and `before_patterns = true`"),
            _ if modifier.starts_with("~*") => format!("write `regex = '(?i){anchor}{path}'`"),
            "" if is_glob => format!("write `glob = \"{path}\"`"),
            "" if matches!(self.found, "{" | "<") => {
                let before = path.split(self.found).next().unwrap_or_default();
                format!("write `glob = \"{before}*\"`")
            }
            _ => format!("write `regex = '{anchor}{path}'`"),
        }
    }

    /// `.php` of `*.php` or `\.php$`.
    fn ending(&self) -> Option<&'a str> {
        let text = self.path.trim_end_matches('$');
        let (_, ending) = text.split_at(text.rfind('.')?);
        let is_word = ending.len() > 1 && ending.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric());
        is_word.then_some(ending)
    }
}

fn escape(character: char, out: &mut String) {
    let mut bytes = [0; 4];
    for byte in character.encode_utf8(&mut bytes).bytes() {
        // Writing to a string cannot fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use toml::Spanned;

    use super::*;
    use crate::raw::Value;

    fn read(text: &str) -> Result<String, String> {
        let raw = crate::RawConfig::parse("t".into(), String::new(), Path::new("/")).expect("TOML");
        let mut reading = Reading { setting: "it".into(), ..Reading::new(&raw) };
        let value = RoutePath.read(&Spanned::new(0..text.len(), Value::String(text.into())), &mut reading);
        value.ok_or_else(|| format!("{:?}", reading.complaints))
    }

    #[test]
    fn what_cannot_be_a_pattern_is_taken_as_it_is() {
        for path in [
            "/",
            "/docs",
            "/docs/",
            "/~user/",
            "/a(b)/",
            "/a.b",
            "/c++",
            "/a$b",
            "/a=b",
            "/@me",
            "/a:b",
            "/a,b;c",
            "/it's",
            "/a b",
            "/straße",
            "/a+b.c",
            "/.well-known",
            "/(x)",
            "/a!",
        ] {
            assert_eq!(read(path), Ok(path.into()));
        }
        for (written, meant) in
            [("/%2A", "/*"), ("/a%20b", "/a b"), ("/%7e", "/~"), ("/100%25", "/100%"), ("/a%3F", "/a?")]
        {
            assert_eq!(read(written), Ok(meant.into()));
        }
    }

    #[test]
    fn patterns_are_refused_with_what_to_write_instead() {
        for (path, remedy) in [
            ("/admin/*", "write \"/admin\""),
            ("/admin/**", "write \"/admin\""),
            ("/admin/.*", "write \"/admin\""),
            ("/admin/.+", "write \"/admin\""),
            ("^/admin", "write \"/admin\""),
            ("~ ^/admin", "write \"/admin\""),
            ("~* ^/admin/(a|b)$", "write \"/admin\""),
            ("^~ /admin/", "write \"/admin\""),
            ("= /admin", "write \"/admin\""),
            ("/admin$", "write `regex = '/admin$'`"),
            ("/a/admin(/|$)", "write \"/a\""),
            ("/user/{id}", "write \"/user\""),
            ("/user/{id}/x", "write `glob = \\\"/user/*\\\"`"),
            ("~* \\.(php|inc)$", "write `regex = '(?i)\\\\.(php|inc)$'`"),
            ("~ ^/a/(b|c)", "write `regex = '^/a/(b|c)'`"),
            ("= /a", "write `exact = \\\"/a\\\"`"),
            ("^~ /a/", "before_patterns = true"),
            ("/a/*.png", "write `glob = \\\"/a/*.png\\\"`"),
            ("/user/<id>", "write \"/user\""),
            ("/user/[0-9]+", "write \"/user\""),
            ("/img/photo?.jpg", "write \"/img\""),
            ("*.php", "scripts = [\\\".php\\\"]"),
            ("~ \\.php$", "scripts = [\\\".php\\\"]"),
            ("/*.php", "scripts = [\\\".php\\\"]"),
            ("*", "write \"/\""),
            ("/.*", "write \"/\""),
            ("^/(.*)$", "write \"/\""),
            ("/*", "`%2A`"),
            ("/(ab)+", "`%2B`"),
        ] {
            let told = read(path).unwrap_err();
            let remedy = match remedy.strip_prefix("write \"") {
                Some(path) => format!("write \\\"{path}"),
                None => remedy.to_owned(),
            };
            assert!(
                told.contains("not a pattern") && told.contains(remedy.trim_end_matches('"')),
                "{path}: {told}"
            );
        }
    }

    #[test]
    fn what_no_request_has_is_refused() {
        for (path, why) in [
            ("docs", "does not begin with"),
            ("/a//b", "/a/b"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/..", "above the root"),
            ("/100%", "two hexadecimal digits"),
            ("/%00", "control character"),
            ("/%ff", "UTF-8"),
        ] {
            let told = read(path).unwrap_err();
            assert!(told.contains(why), "{path}: {told}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_read_as_it_is_written(path in "(/[a-z%*?+$(){}|^~. é]{1,5}){1,3}/?") {
            // Segments of dots alone name something else.
            prop_assume!(path.split('/').all(|segment| segment != "." && segment != ".."));
            let written = RoutePath.write(&path);
            prop_assert_eq!(read(written.as_str().unwrap_or_default()), Ok(path));
        }
    }
}
