//! Patterns on paths, for the rules of a configuration.

/// Whether `path`, relative to the root and without a leading '/', matches `pattern`.
///
/// `*` matches any bytes, '/' included, and `?` any one byte. A pattern that begins with '/' must match the whole
/// path, any other a tail of it after a '/': `*.css`, `sw.js`, `/assets/*`.
pub(crate) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [b'/', anchored @ ..] => matches_whole(anchored, path),
        _ => {
            let tails =
                path.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(at, _)| &path[at + 1..]);
            std::iter::once(path).chain(tails).any(|tail| matches_whole(pattern, tail))
        }
    }
}

/// Whether a text as a whole matches a pattern of `*` and `?`.
///
/// Backtracks to the last star only: linear in practice, quadratic at worst, never exponential.
pub fn matches_whole(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                last_star = Some((p, t));
                p += 1;
            }
            Some(&expected) if expected == b'?' || expected == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut last_star {
                Some((star, taken)) => {
                    *taken += 1;
                    (p, t) = (*star + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_cross_slashes_and_anchors_hold() {
        for (pattern, path, expected) in [
            ("*.css", "site.css", true),
            ("*.css", "a/b/site.css", true),
            ("*.css", "site.css.map", false),
            ("sw.js", "sw.js", true),
            ("sw.js", "deep/sw.js", true),
            ("sw.js", "not-sw.js", false),
            ("/sw.js", "deep/sw.js", false),
            ("/assets/*", "assets/a/b", true),
            ("/assets/*", "other/assets/a", false),
            ("assets/*.js", "v1/assets/x/y.js", true),
            ("/*", "", true),
            ("*", "anything/at/all", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*c", "xxaxxbxxbc", true),
            ("*a*b*c", "xxaxxbxxbd", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} on {path}");
        }
    }
}
