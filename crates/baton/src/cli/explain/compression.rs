//! Whether a response is compressed on the fly, and why not.

use baton_config::Compress;
use baton_http::Coding;

use super::lines::field;

/// About a file of so many bytes, with this response head, for a request with these fields.
pub(super) fn of_file(compress: &Compress, request: &[u8], head: &str, bytes: u64) -> String {
    let rules = compress.rules();
    let media_type = field(head, "content-type").unwrap_or_default();
    let is_weak = field(head, "etag").is_some_and(|tag| tag.starts_with("W/"));
    match field(head, "content-encoding") {
        Some(coding) if is_weak => {
            format!("{coding}, made for the first client that takes it, and kept in memory")
        }
        Some(_) => "no: a copy beside the file is".into(),
        None if !rules.covers(media_type.as_bytes()) => format!("no: {media_type} is not among `types`"),
        None if bytes < rules.min_bytes => format!("no: files below {} bytes are not", rules.min_bytes),
        None if bytes > rules.max_bytes => format!("no: files above {} bytes are not", rules.max_bytes),
        None => not_chosen(compress, request),
    }
}

/// About what an application or an origin answers to a request with these fields.
pub(super) fn of_stream(compress: &Compress, request: &[u8]) -> String {
    let types = compress.types.join(", ");
    match chosen(compress, request) {
        Some(coding) => format!("{coding}, as it passes, if its type is among {types}"),
        None => not_chosen(compress, request),
    }
}

fn not_chosen(compress: &Compress, request: &[u8]) -> String {
    match chosen(compress, request) {
        Some(_) => "no: it would not be shorter, the response forbids it, or a part is asked for".into(),
        None => {
            let known: Vec<_> = compress.codings.iter().map(|coding| coding.token()).collect();
            format!("not for this request, which prefers none of {}", known.join(", "))
        }
    }
}

fn chosen(compress: &Compress, request: &[u8]) -> Option<&'static str> {
    let request = String::from_utf8_lossy(request);
    let accepted = field(&request, "accept-encoding");
    compress.rules().choose(accepted.map(str::as_bytes)).map(Coding::token)
}
