//! Files of a few sizes, asked for in turn: WebStone's (Wowra, table III), or any others.

use super::model::{LoadSite, SiteFile};
use crate::script::{Script, ScriptStep};
use crate::targets::LoadRequest;

/// The sizes of WebStone in bytes.
const WEBSTONE: [u64; 8] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

pub(super) fn make(bytes: &[u64]) -> LoadSite {
    let (name, bytes) = if bytes.is_empty() {
        ("WebStone's sizes".to_owned(), &WEBSTONE[..])
    } else {
        (format!("{} sizes", bytes.len()), bytes)
    };
    let path = |bytes: &u64| format!("/sizes/{bytes}");
    let files = bytes.iter().map(|bytes| SiteFile::text(path(bytes), *bytes)).collect();
    let mut script = Script::new(bytes.iter().map(|bytes| LoadRequest::file(path(bytes), *bytes)).collect());
    for request in 0..bytes.len() as u32 {
        script.push([ScriptStep { request, pause_ms: 0 }]);
    }
    LoadSite::new(name, files, script)
}
