//! Pages with images of their own, which link to each other.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

/// Writes them below `root`; visits begin at `/index.html`.
pub(super) fn write(root: &Path) -> Result<()> {
    fs::create_dir_all(root)?;
    for page in 0..PAGES {
        let mut html = format!("<!DOCTYPE html><title>{page}</title>\n");
        for image in 0..IMAGES {
            let name = format!("{page}-{image}.png");
            let bytes: Vec<u8> = (0..IMAGE_BYTES).map(|at| (at * 31 + page * 7 + image) as u8).collect();
            fs::write(root.join(&name), bytes)?;
            let _ = writeln!(html, "<img src=\"{name}\" alt=\"\">");
        }
        for other in (0..PAGES).filter(|other| *other != page) {
            let _ = writeln!(html, "<a href=\"{}\">{other}</a>", page_name(other));
        }
        fs::write(root.join(page_name(page)), html)?;
    }
    Ok(())
}

fn page_name(page: usize) -> String {
    if page == 0 { "index.html".to_owned() } else { format!("page{page}.html") }
}

const PAGES: usize = 12;
const IMAGES: usize = 8;
const IMAGE_BYTES: usize = 8 << 10;
