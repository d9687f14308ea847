//! The listing as JSON: `{"path", "cut", "entries": [{"name", "type", "size", "mtime", "href"}]}`.
//!
//! `mtime` is an HTTP date, as in nginx's listings. Bytes of a name that are not UTF-8 appear as U+FFFD; `href` leads
//! to the file all the same.

use std::fmt::Write;

use super::contents::{Contents, Entry};

pub(super) fn document(contents: &Contents) -> String {
    let mut out = String::from("{\"path\":");
    string(&contents.path, &mut out);
    // Writing to a string cannot fail, here and below.
    let _ = write!(out, ",\"cut\":{},\"entries\":[", contents.cut);
    for (index, entry) in contents.entries.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        object(entry, &mut out);
    }
    out.push_str("\n]}\n");
    out
}

fn object(entry: &Entry, out: &mut String) {
    out.push_str("{\"name\":");
    string(&entry.name, out);
    out.push_str(if entry.is_directory { ",\"type\":\"directory\"" } else { ",\"type\":\"file\"" });
    if !entry.is_directory {
        let _ = write!(out, ",\"size\":{}", entry.size);
    }
    out.push_str(",\"mtime\":");
    string(&entry.date().date, out);
    let _ = write!(out, ",\"href\":\"{}\"}}", entry.href());
}

/// A string of RFC 8259, section 7.
fn string(bytes: &[u8], out: &mut String) {
    out.push('"');
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_escaped() {
        let mut out = String::new();
        string(b"a\"b\\c\n\x01\xff\xc3\xa9", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\c\\u000a\\u0001\u{fffd}\u{e9}\"");
    }
}
