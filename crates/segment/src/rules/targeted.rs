//! Cache control for some caches only (RFC 9213): fields such as `CDN-Cache-Control`, which replace Cache-Control and
//! Expires for those that they are meant for.

use super::{Delta, ResponseDirectives, SECONDS_MAX};
use baton_http::origin::ResponseHead;
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};

/// The directives of the first field of `names` that the response has and that is well-formed. A field that is empty
/// or malformed counts as absent (RFC 9213 section 2.1).
pub fn targeted(head: &ResponseHead, names: &[String]) -> Option<ResponseDirectives> {
    names.iter().find_map(|name| {
        let is_named = |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        let lines: Vec<_> = head.fields().filter(is_named).map(|(_, value)| value).collect();
        if lines.is_empty() {
            return None;
        }
        let dictionary = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>().ok()?;
        (!dictionary.is_empty()).then(|| directives(&dictionary))
    })
}

fn directives(dictionary: &Dictionary) -> ResponseDirectives {
    let mut directives = ResponseDirectives::default();
    for (key, entry) in dictionary {
        let delta = || match entry {
            ListEntry::Item(Item { bare_item: BareItem::Integer(seconds), .. }) => {
                let seconds = i64::from(*seconds).min(SECONDS_MAX.into());
                u32::try_from(seconds).map_or(Delta::Invalid, Delta::Seconds)
            }
            _ => Delta::Invalid,
        };
        let is_false = matches!(entry, ListEntry::Item(Item { bare_item: BareItem::Boolean(false), .. }));
        let is_true = matches!(entry, ListEntry::Item(Item { bare_item: BareItem::Boolean(true), .. }));
        match key.as_str() {
            "no-store" => directives.no_store = !is_false,
            "no-cache" if !is_false => directives.no_cache |= !withholds(&mut directives, entry),
            "private" if !is_false => directives.private |= !withholds(&mut directives, entry),
            "must-revalidate" => directives.must_revalidate = !is_false,
            "proxy-revalidate" => directives.proxy_revalidate = !is_false,
            "public" => directives.public = is_true,
            "must-understand" => directives.must_understand = is_true,
            "max-age" => directives.max_age = delta(),
            "s-maxage" => directives.s_maxage = delta(),
            "stale-while-revalidate" => directives.stale_while_revalidate = delta(),
            "stale-if-error" => directives.stale_if_error = delta(),
            _ => {}
        }
    }
    directives
}

/// Takes the field names of a qualified directive, which are in a string.
fn withholds(directives: &mut ResponseDirectives, entry: &ListEntry) -> bool {
    match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(names), .. }) => {
            directives.withhold_names(names.as_str().as_bytes())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_http::Status;

    fn read(fields: &str) -> Option<ResponseDirectives> {
        let head = ResponseHead::of_lines(fields.as_bytes().to_vec(), Status::OK, b"OK", None, |_| true);
        targeted(&head, &["Baton-Cache-Control".into(), "CDN-Cache-Control".into()])
    }

    #[test]
    fn rfc9213_2_2_the_first_valid_field_of_the_list_counts() {
        let max_age = |fields| read(fields).map(|directives| directives.max_age);
        for (fields, expected) in [
            ("Cache-Control: max-age=1\n", None),
            ("CDN-Cache-Control: max-age=2\n", Some(Delta::Seconds(2))),
            ("cdn-cache-control: max-age=2\nBaton-Cache-Control: max-age=3\n", Some(Delta::Seconds(3))),
            ("CDN-Cache-Control: max-age=2\nBaton-Cache-Control: max-age=\n", Some(Delta::Seconds(2))),
            ("CDN-Cache-Control: max-age=2\nBaton-Cache-Control: \n", Some(Delta::Seconds(2))),
            ("CDN-Cache-Control: public\nCDN-Cache-Control: max-age=2\n", Some(Delta::Seconds(2))),
            ("CDN-Cache-Control: max-age=1, max-age=2\n", Some(Delta::Seconds(2))),
            ("CDN-Cache-Control: max-age=2;a;b=c\n", Some(Delta::Seconds(2))),
            ("CDN-Cache-Control: max-age=99999999999999\n", Some(Delta::Seconds(SECONDS_MAX))),
        ] {
            assert_eq!(max_age(fields), expected, "{fields}");
        }
    }

    #[test]
    fn rfc9213_2_1_what_is_no_structured_field_is_absent() {
        for value in [
            "max-age=2,",
            "Max-Age=2",
            "max-age =2",
            "max-age=9999999999999999",
            "no-store; max-age=2 x",
            "a=\"b",
        ] {
            assert_eq!(read(&format!("CDN-Cache-Control: {value}\n")), None, "{value}");
        }
    }

    #[test]
    fn rfc9213_2_1_values_of_another_type_restrict() {
        let directives =
            read("CDN-Cache-Control: max-age=\"2\", s-maxage=-1, no-store=2, public=2\n").unwrap();
        assert_eq!((directives.max_age, directives.s_maxage), (Delta::Invalid, Delta::Invalid));
        assert!(directives.no_store && !directives.public);
        let directives = read("CDN-Cache-Control: no-store=?0, private=?0, no-cache=\"a, b\"\n").unwrap();
        assert!(!directives.no_store && !directives.private && !directives.no_cache);
        assert_eq!(directives.withheld.len(), 2);
        assert!(read("CDN-Cache-Control: no-cache=(a b)\n").unwrap().no_cache);
    }
}
