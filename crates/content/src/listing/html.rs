//! The listing as a page: no script, no image, nothing fetched from anywhere.

use std::fmt::Write;

use super::contents::{Contents, ENTRIES_MAX, Entry};

const STYLE: &str = "body{font:1rem/1.6 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color-scheme:light dark}h1{font-size:1.3rem;overflow-wrap:anywhere}table{width:100%;border-collapse:collapse}\
th{text-align:left;font-weight:600}td,th{padding:.15rem .5rem;border-bottom:1px solid #8883}\
td:first-child{overflow-wrap:anywhere}td+td,th+th{text-align:right;white-space:nowrap;\
font-variant-numeric:tabular-nums}a{text-decoration:none}a:hover{text-decoration:underline}";

pub(super) fn document(contents: &Contents) -> String {
    let path = escaped(&String::from_utf8_lossy(&contents.path));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{path}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{path}</h1>\n\
         <table>\n<thead><tr><th>Name</th><th>Size</th><th>Modified (UTC)</th></tr></thead>\n<tbody>\n"
    );
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

fn row(entry: &Entry, page: &mut String) {
    let name = escaped(&String::from_utf8_lossy(&entry.name));
    let (slash, size) = if entry.is_directory { ("/", String::new()) } else { ("", readable(entry.size)) };
    let date = entry.date().date;
    // "06 Nov 1994 08:49" of "Sun, 06 Nov 1994 08:49:37 GMT".
    let date = String::from_utf8_lossy(&date[5..22]);
    let href = entry.href();
    let _ = writeln!(
        page,
        "<tr><td><a href=\"{href}\">{name}{slash}</a></td><td>{size}</td><td>{date}</td></tr>"
    );
}

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
    use super::{escaped, readable};

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(escaped("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
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
