//! Documents that migrate between servers without a front-end (DCWS): links in pages, trust between servers, and the
//! process that lends documents and calls them back.
//!
//! ```text
//!   the site's folder ─► scan ─┐                                  ┌─► Map ─► master ─► workers: redirects, pages rewritten
//!   workers' counts ───────────┼─► Cooperation (policy, trust) ───┤
//!   peers' questions ─► door ──┘                                  └─► questions to peers
//! ```
//!
//! [`links`], [`Cooperation`], [`Map`] and the trust between servers do no I/O.

mod cooperation;
pub mod links;
mod map;
mod messages;
mod origin;
mod process;
mod rules;
mod settings;
mod trust;
mod words;

pub use cooperation::{AuthenticQuestion, Cooperation, DocumentFile, FileStamp};
pub use map::{Book, CountedRequest, Counts, Map, Requested, ServedCounts};
pub use messages::{FromDocuments, ToDocuments};
pub use origin::{COPIES, Origin};
pub use process::run;
pub use rules::{PAGE_BYTES_MAX, Rules, Stays, is_page};
pub use settings::{DocumentsSettings, FilesSettings, SiteSettings};
pub use trust::{Key, SIGNATURE_FIELD};
pub use words::{
    Distrust, Envelope, LoadReport, Question, Reply, SignedMessage, WORDS_BYTES_MAX, sign_question,
};

/// A decoded path as it stands in a URL that is put into pages: nothing but letters, digits and `-._~/%`.
pub fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The tag by which a copy of a document of `home` is dropped from a cache.
pub fn copy_tag(home: &Origin, document: &[u8]) -> String {
    format!("{home}/{}", encode(document))
}

/// Where a peer has the copy of a document of `home`.
pub fn copy_address(peer: &Origin, home: &Origin, document: &[u8]) -> String {
    format!("{peer}{}/{}", home.copies_path(), encode(document))
}
