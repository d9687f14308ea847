//! Names of scripts. A file that is named like one is source code, in any spelling of the name.

use baton_http::Coding;

/// Whether a file of this path is named like a script, or is a coded copy of one: `a.php`, `a.PHP`, `a.php.`, `a.php.gz`.
/// `endings` are such as `.php`.
pub fn is_named_like_a_script<E: AsRef<str>>(path: &[u8], endings: &[E]) -> bool {
    let mut name = without_dots(path);
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        if ends_with(name, coding.extension()) {
            name = without_dots(&name[..name.len() - coding.extension().len()]);
            break;
        }
    }
    endings.iter().any(|ending| ends_with(name, ending.as_ref()))
}

/// On some systems, from which files may be copied, `a.php.` is the same as `a.php`.
fn without_dots(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
    &path[..end]
}

fn ends_with(name: &[u8], ending: &str) -> bool {
    let tail = name.len().checked_sub(ending.len()).map(|start| &name[start..]);
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::is_named_like_a_script;

    #[test]
    fn every_spelling_of_a_script_is_one_and_nothing_else() {
        for name in [
            "a.php",
            "sub/a.PHP",
            "a.pHp.",
            "a.php...",
            "a.php.gz",
            "a.PHP.BR",
            "a.php.zst.",
            "a.cgi",
            ".php",
        ] {
            assert!(is_named_like_a_script(name.as_bytes(), &[".php", ".cgi"]), "{name}");
        }
        for name in
            ["a.php~", "a.php.bak", "a.phpx", "aphp", "php", "a.php/b", "a.gz", "a.php.tar", "", "..."]
        {
            assert!(!is_named_like_a_script(name.as_bytes(), &[".php", ".cgi"]), "{name}");
        }
        assert!(!is_named_like_a_script::<&str>(b"a.php", &[]));
    }
}
