//! Names of scripts. A file that is named like one is source code, in any spelling of the name.

use baton_http::Coding;

/// Whether a file of this path is named like a script, or is a copy of one that a coding or an editor has made: `a.php`,
/// `a.PHP`, `a.php.`, `a.php.gz`, `a.php~`. `endings` are such as `.php`.
pub fn is_named_like_a_script<E: AsRef<str>>(path: &[u8], endings: &[E]) -> bool {
    let mut name = path;
    loop {
        if endings.iter().any(|ending| ends_with(name, ending.as_ref())) {
            return true;
        }
        let Some(copied) = COPIES.iter().find(|copy| ends_with(name, copy)) else { return false };
        name = &name[..name.len() - copied.len()];
    }
}

/// What names of copies end in. On some systems, from which files may be copied, `a.php.` is the same as `a.php`. The last rows
/// are what editors and people who are about to change a file leave behind.
const COPIES: [&str; 12] = [
    ".",
    Coding::Gzip.extension(),
    Coding::Brotli.extension(),
    Coding::Zstd.extension(),
    "~",
    "#",
    ".bak",
    ".old",
    ".orig",
    ".save",
    ".swo",
    ".swp",
];

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
            "a.php~",
            "#a.php#",
            ".a.php.swp",
            "a.PHP.Bak",
            "a.php.orig.gz",
            "a.php.save",
        ] {
            assert!(is_named_like_a_script(name.as_bytes(), &[".php", ".cgi"]), "{name}");
        }
        for name in
            ["a.php.c", "a.phpx", "a~", "old.bak", "aphp", "php", "a.php/b", "a.gz", "a.php.tar", "", "..."]
        {
            assert!(!is_named_like_a_script(name.as_bytes(), &[".php", ".cgi"]), "{name}");
        }
        assert!(!is_named_like_a_script::<&str>(b"a.php", &[]));
    }
}
