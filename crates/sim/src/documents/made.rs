//! Sites that are made: pages that link to each other at random, with objects of their own and objects that all embed.

use super::site::{Document, DocumentSite};
use crate::trace::{Parameters, ParametersError};

/// Parameters of a site. As text: `pages=100,links=10,images=2`, each optional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteParameters {
    /// Pages, 1 to 100,000; the first ones are entry points.
    pub pages: u32,
    /// Well-known entry points, 1 to `pages`.
    pub entries: u32,
    /// Links of a page to other pages: to pages at random, and one path from an entry point to each page.
    pub links: u32,
    /// Size of a page in KB, the mean; sizes are uniform from half of it to one and a half times.
    pub page_kb: f64,
    /// Images that a page has for itself.
    pub images: u32,
    /// Size of an image in KB, the mean.
    pub image_kb: f64,
    /// Images that every page embeds, such as buttons.
    pub shared: u32,
    /// Files to which one page each links, and that have no links.
    pub files: u32,
    /// Size of a file in KB, the mean.
    pub file_kb: f64,
}

impl Default for SiteParameters {
    fn default() -> Self {
        Self {
            pages: 117,
            entries: 1,
            links: 10,
            page_kb: 2.0,
            images: 2,
            image_kb: 2.0,
            shared: 0,
            files: 0,
            file_kb: 1000.0,
        }
    }
}

/// Sites like the four of Baker and Moon, 1999, by number of documents, links and bytes, known at second hand (decision
/// 0052).
const PRESETS: [(&str, SiteParameters); 4] = [
    // A guide with pictures: 349 documents, 1,433 links, 750 KB.
    (
        "lod",
        SiteParameters { pages: 117, entries: 1, links: 10, page_kb: 2.2, images: 2, image_kb: 2.1, ..EMPTY },
    ),
    // An archive of a mailing list, with buttons on each page: 1,534 documents, 28,998 links, 5,918 KB.
    ("mapug", SiteParameters { pages: 1530, links: 15, page_kb: 3.9, image_kb: 1.0, shared: 4, ..EMPTY }),
    // Statistics, their bars one image: 402 documents, 57,531 links, 8,468 KB.
    ("sblog", SiteParameters { pages: 401, links: 142, page_kb: 21.0, image_kb: 1.0, shared: 1, ..EMPTY }),
    // Large pictures on one list: 130 files of 1 to 2.8 MB, 247 MB.
    ("sequoia", SiteParameters { pages: 1, page_kb: 8.0, files: 130, file_kb: 1900.0, ..EMPTY }),
];

const EMPTY: SiteParameters = SiteParameters {
    pages: 1,
    entries: 1,
    links: 0,
    page_kb: 1.0,
    images: 0,
    image_kb: 1.0,
    shared: 0,
    files: 0,
    file_kb: 1.0,
};

impl SiteParameters {
    /// The names of the sites that are like published ones.
    pub const NAMES: [&str; 4] = [PRESETS[0].0, PRESETS[1].0, PRESETS[2].0, PRESETS[3].0];

    /// A site like a published one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        PRESETS.iter().find(|(known, _)| *known == name).map(|(_, made)| *made)
    }

    /// Reads parameters.
    ///
    /// # Errors
    /// An unknown name, no number, or one out of range.
    pub fn parse(text: &str) -> Result<Self, ParametersError> {
        let mut made = Self::default();
        let mut counts =
            [made.pages, made.entries, made.links, made.images, made.shared, made.files].map(f64::from);
        let [pages, entries, links, images, shared, files] = &mut counts;
        Parameters::new(
            "pages=117,entries=1,links=10,page_kb=2,images=2,image_kb=2,shared=0,files=0,file_kb=1000",
        )
        .number("pages", 1.0..=1e5, pages)
        .number("entries", 1.0..=1e5, entries)
        .number("links", 0.0..=1000.0, links)
        .number("page_kb", 0.001..=1e6, &mut made.page_kb)
        .number("images", 0.0..=100.0, images)
        .number("image_kb", 0.001..=1e6, &mut made.image_kb)
        .number("shared", 0.0..=100.0, shared)
        .number("files", 0.0..=1e5, files)
        .number("file_kb", 0.001..=1e7, &mut made.file_kb)
        .read(text)?;
        [made.pages, made.entries, made.links, made.images, made.shared, made.files] =
            counts.map(|count| count as u32);
        made.entries = made.entries.min(made.pages);
        Ok(made)
    }

    /// Makes the site.
    #[must_use]
    pub fn site(&self, name: &str, seed: u64) -> DocumentSite {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut documents: Vec<Document> = (0..self.pages)
            .map(|page| Document {
                bytes: bytes(self.page_kb, &mut random),
                stays: page < self.entries,
                ..Document::default()
            })
            .collect();
        // An earlier page leads to each page: all can be reached.
        for page in self.entries..self.pages {
            let from = random.u32(..page);
            documents[from as usize].links.push(page);
        }
        for page in 0..self.pages {
            let links = &mut documents[page as usize].links;
            let known = links.len() as u32;
            let others = (known..self.links).map(|_| random.u32(..self.pages)).filter(|&to| to != page);
            links.extend(others);
            links.sort_unstable();
            links.dedup();
        }
        let mut add = |documents: &mut Vec<Document>, kb| {
            documents.push(Document { bytes: bytes(kb, &mut random), ..Document::default() });
            documents.len() as u32 - 1
        };
        for page in 0..self.pages as usize {
            for _ in 0..self.images {
                let image = add(&mut documents, self.image_kb);
                documents[page].embedded.push(image);
            }
        }
        for _ in 0..self.shared {
            let image = add(&mut documents, self.image_kb);
            documents[..self.pages as usize].iter_mut().for_each(|page| page.embedded.push(image));
        }
        for file in 0..self.files {
            let id = add(&mut documents, self.file_kb);
            documents[(file % self.pages) as usize].links.push(id);
        }
        DocumentSite { name: name.to_owned(), documents, starts: (0..self.entries).collect() }
    }
}

fn bytes(mean_kb: f64, random: &mut fastrand::Rng) -> u64 {
    (mean_kb * 1024.0 * (0.5 + random.f64())).max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published numbers, within a tenth.
    #[test]
    fn presets_are_like_their_sites() {
        let published = [
            ("lod", 349, 1_433, 750),
            ("mapug", 1_534, 28_998, 5_918),
            ("sblog", 402, 57_531, 8_468),
            ("sequoia", 131, 130, 247_000),
        ];
        for (name, documents, links, kb) in published {
            let facts = SiteParameters::named(name).unwrap().site(name, 1).facts();
            let near = |ours: f64, published: f64| (ours / published - 1.0).abs() < 0.1;
            assert!(near(facts.documents as f64, f64::from(documents)), "{name}: {facts:?}");
            assert!(near(facts.bytes as f64 / 1024.0, f64::from(kb)), "{name}: {facts:?}");
            // Of the links at random of a page with many, some are the same.
            let links = facts.links as f64 / f64::from(links);
            assert!((0.8..1.1).contains(&links), "{name}: {facts:?}");
            assert_eq!(facts.entry_points, 1);
        }
    }

    #[test]
    fn every_document_can_be_reached() {
        let made = SiteParameters {
            pages: 50,
            entries: 2,
            links: 3,
            images: 1,
            shared: 2,
            files: 9,
            ..SiteParameters::default()
        };
        let site = made.site("", 3);
        let mut reached = vec![false; site.documents.len()];
        let mut todo: Vec<u32> = site.entry_points();
        assert_eq!(todo, [0, 1]);
        while let Some(id) = todo.pop() {
            if !std::mem::replace(&mut reached[id as usize], true) {
                let document = &site.documents[id as usize];
                todo.extend(document.links.iter().chain(&document.embedded));
            }
        }
        assert!(reached.iter().all(|&reached| reached));
        assert_eq!((reached.len(), site.facts().embedded_most), (50 + 50 + 2 + 9, 50));
    }

    #[test]
    fn parameters_are_read_and_refused() {
        let expected = SiteParameters { pages: 10, entries: 10, shared: 3, ..SiteParameters::default() };
        assert_eq!(SiteParameters::parse("pages=10,shared=3,entries=20"), Ok(expected));
        for wrong in ["pages=0", "sites=3", "links", "page_kb=nan", "shared=101"] {
            assert!(SiteParameters::parse(wrong).is_err(), "{wrong}");
        }
    }
}
