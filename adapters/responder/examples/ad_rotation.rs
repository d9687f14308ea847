//! Ad rotation after SPECweb99: a page of the requested size (`?s=BYTES`), with an advertisement every 4 KiB. Try it
//! behind a server, or with `spawn-fcgi -s SOCKET -F 8 -- ad_rotation`.
//!
//! The page is made where it leaves from: in the shared region, if the server offers one.

use std::io::{self, Write};

use baton_responder::{Request, Responder};

const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog.\n";
const PAGE_BYTES_DEFAULT: usize = 32 << 10;
const PAGE_BYTES_MAX: usize = 8 << 20;
const AD_EVERY: usize = 4096;

fn main() -> io::Result<()> {
    let mut responder = Responder::inherited()?;
    let template: Vec<u8> = TEXT.iter().copied().cycle().take(PAGE_BYTES_MAX).collect();
    let mut shown: u64 = 0;
    loop {
        let mut request = responder.next_request()?;
        shown += 1;
        if let Err(error) = answer(&mut request, &template, shown) {
            eprintln!("request {shown}: {error}");
        }
    }
}

fn answer(request: &mut Request<'_>, template: &[u8], shown: u64) -> io::Result<()> {
    let bytes = request.variable("QUERY_STRING").and_then(asked_bytes).unwrap_or(PAGE_BYTES_DEFAULT);
    let bytes = bytes.min(PAGE_BYTES_MAX);
    write!(request, "Content-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n")?;
    let mut at = 0;
    while at < bytes {
        let space = request.space()?;
        // Whole advertisements only: a piece ends where the next one begins.
        let piece = space.len().min(bytes - at).min(AD_EVERY - at % AD_EVERY);
        let page = &mut space[..piece];
        page.copy_from_slice(&template[at..at + piece]);
        if at % AD_EVERY == 0 && piece >= 32 {
            write!(&mut page[..], "<ad {shown:010}>")?;
        }
        request.commit(piece);
        at += piece;
    }
    Ok(())
}

fn asked_bytes(query: &[u8]) -> Option<usize> {
    std::str::from_utf8(query.strip_prefix(b"s=")?).ok()?.parse().ok()
}
