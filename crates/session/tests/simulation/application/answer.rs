//! The answer of an application to a query: bytes, and how they end.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::manner::{Manner, Query, REDIRECTED_TO};
use super::scene::Scene;
use crate::site::{Folder, INTERNAL, LINK};

/// A CGI response, as far as the application writes it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) ending: Ending,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// In order.
    Complete,
    /// With the connection to the server.
    Closes,
    /// The application refuses the request.
    Refuses,
    /// It does nothing more.
    Never,
}

impl Answer {
    /// The answer to a request with this method and body.
    pub(super) fn to(query: Query, method: &str, body: &[u8], scene: Scene<'_>) -> Self {
        let manner = query.manner;
        // One that is refused has not begun, and may be sent again.
        if manner != Manner::Overloaded {
            scene.ledger.note(method, query.number);
        }
        let ending = match manner {
            Manner::Never | Manner::Nonsense => Ending::Never,
            Manner::Gone | Manner::Cut | Manner::OpenCut | Manner::HeadOnly => Ending::Closes,
            Manner::DiesHolding => Ending::Closes,
            Manner::Overloaded => Ending::Refuses,
            Manner::Cached => unreachable!("see `cached::answer`"),
            _ => Ending::Complete,
        };
        if matches!(manner, Manner::Never | Manner::Gone | Manner::Overloaded) {
            return Self { bytes: Vec::new(), ending };
        }
        let mut content = query.content(method, body);
        let whole = content.len();
        let fields = if manner.names_files() {
            name_files(query, scene.folder, &mut content)
        } else {
            let length = |len: usize| format!("Content-Length: {len}\r\n");
            match manner {
                Manner::NoHead => "no head\r\n".into(),
                Manner::Redirect => format!("Location: {REDIRECTED_TO}\r\n"),
                Manner::Open | Manner::OpenCut => "Content-Type: text/plain\r\n".into(),
                Manner::Missing => "Status: 404 Not here\r\n".to_owned() + &length(whole),
                Manner::Short => length(whole + 10),
                _ => length(whole),
            }
        };
        match manner {
            Manner::Redirect | Manner::HeadOnly => content.clear(),
            Manner::Long => content.extend_from_slice(b"more"),
            Manner::Cut | Manner::OpenCut => content.truncate(whole / 2),
            _ => {}
        }
        let bytes = match manner {
            Manner::Nonsense => vec![0x77; 20],
            _ => [format!("{fields}\r\n").as_bytes(), &content].concat(),
        };
        Self { bytes, ending }
    }
}

/// Returns the fields of an answer that names files, and changes its content where that has the names.
fn name_files(query: Query, folder: &Folder, content: &mut Vec<u8>) -> String {
    let (file, other) = query.file(&folder.files);
    let path = |name: &str| text_of(&folder.path().join(name));
    let secret = text_of(&folder.secret());
    let mut fields = String::from("X-Own: yes\r\n");
    let named = match query.manner {
        Manner::SendFile => path(file.name),
        Manner::NamesNothing => path("nothing.txt"),
        Manner::NamesOutside => secret,
        Manner::ClimbsOut => path(&format!("../..{secret}")),
        Manner::FollowsOut => path(LINK),
        Manner::AccelRedirect => {
            let _ = write!(fields, "X-Accel-Redirect: {INTERNAL}/{}\r\n", file.name);
            return fields;
        }
        _ => {
            let second = match query.manner {
                Manner::ZeroCopyOutside => secret,
                Manner::ZeroCopyNothing => path("nothing.txt"),
                _ => path(other.name),
            };
            let mut map = String::new();
            for name in [path(file.name), second] {
                let separator = if map.is_empty() { "" } else { ":" };
                let _ = write!(map, "{separator}{}/{}", content.len(), name.len());
                content.extend_from_slice(name.as_bytes());
            }
            match query.manner {
                Manner::ZeroCopyBeyond => content.truncate(content.len() - 1),
                _ => content.extend_from_slice(AFTER_FILES),
            }
            let _ = write!(fields, "X-ZeroCopy: {map}\r\n");
            return fields;
        }
    };
    content.clear();
    let _ = write!(fields, "X-Sendfile: {named}\r\n");
    fields
}

fn text_of(path: &Path) -> String {
    String::from_utf8(path.as_os_str().as_bytes().to_vec()).unwrap()
}

/// The content behind two files that are named in it.
pub(crate) const AFTER_FILES: &[u8] = b"the end";
