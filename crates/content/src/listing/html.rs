//! The listing as a page: no script, no image, nothing fetched from anywhere.

use std::fmt::Write;

use baton_http::Stamp;

use super::contents::{Contents, ENTRIES_MAX, Entry};
use super::view::{SortKey, View};

/// Colours are explicit, because a browser's own links are too dim on some dark backgrounds. On a narrow screen the
/// time of the day goes.
const STYLE: &str = ":root{color-scheme:light dark;--ink:#1c1c1c;--paper:#fff;--link:#0b57d0;--line:#d0d0d0}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--link:#8ab4f8;--line:#444}}\
body{font:1rem/1.6 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:var(--ink);background:var(--paper)}h1{font-size:1.3rem;overflow-wrap:anywhere}\
table{width:100%;border-collapse:collapse}th{text-align:left;font-weight:600}\
td,th{padding:.15rem .5rem;border-bottom:1px solid var(--line)}td:first-child{overflow-wrap:anywhere}\
td+td,th+th{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\
@media(max-width:30rem){time span{display:none}td,th{padding:.15rem .25rem}}";

pub(super) fn document(contents: &Contents, view: View) -> String {
    let path = escaped(&String::from_utf8_lossy(&contents.path));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{path}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{path}</h1>\n<table>\n<thead><tr>"
    );
    for (key, title) in SortKey::ALL.into_iter().zip(["Name", "Size", "Modified (UTC)"]) {
        heading(key, title, view, &mut page);
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if contents.path != b"/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in &contents.entries {
        row(entry, &mut page);
    }
    page.push_str("</tbody>\n</table>\n");
    if contents.cut {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<p>There are more than the {ENTRIES_MAX} entries shown here.</p>");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// A link that sorts by the column, or turns the order round if it is sorted by it already.
fn heading(key: SortKey, title: &str, view: View, page: &mut String) {
    let (state, arrow, next) = match (key == view.key, view.is_descending) {
        (false, _) => ("", "", "asc"),
        (true, false) => (" aria-sort=\"ascending\"", " \u{2191}", "desc"),
        (true, true) => (" aria-sort=\"descending\"", " \u{2193}", "asc"),
    };
    let word = key.word();
    let _ = write!(page, "<th{state}><a href=\"?sort={word}&amp;order={next}\">{title}{arrow}</a></th>");
}

fn row(entry: &Entry, page: &mut String) {
    let name = escaped(&String::from_utf8_lossy(&entry.name));
    let (slash, size) = if entry.is_directory { ("/", String::new()) } else { ("", readable(entry.size)) };
    let (day, minute) = iso(&entry.date());
    let href = entry.href();
    let _ = writeln!(
        page,
        "<tr><td><a href=\"{href}\">{name}{slash}</a></td><td>{size}</td>\
         <td><time datetime=\"{day}T{minute}Z\">{day}<span> {minute}</span></time></td></tr>"
    );
}

/// Day and minute of ISO 8601: "1994-11-06" and "08:49" of "Sun, 06 Nov 1994 08:49:37 GMT".
fn iso(stamp: &Stamp) -> (String, String) {
    let text = |from: usize, to: usize| String::from_utf8_lossy(&stamp.date[from..to]);
    let month = MONTHS.iter().position(|month| *month == text(8, 11)).map_or(0, |at| at + 1);
    (format!("{}-{month:02}-{}", text(12, 16), text(5, 7)), text(17, 22).into_owned())
}

/// Dates as HTTP writes them.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn readable(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use baton_http::Stamp;

    use super::{escaped, iso, readable};

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(escaped("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
    }

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(iso(&Stamp::at(784_111_777)), ("1994-11-06".to_owned(), "08:49".to_owned()));
        assert_eq!(iso(&Stamp::at(0)), ("1970-01-01".to_owned(), "00:00".to_owned()));
    }

    #[test]
    fn sizes_have_three_or_four_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (5 << 20, "5.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(readable(bytes), text);
        }
    }
}
