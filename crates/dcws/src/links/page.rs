//! The links of a page, and the page with some of them replaced.

use std::ops::Range;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::link::{Link, Use};
use super::tag::{Attribute, attributes, is_space};
use super::{css, reference};
use crate::origin::Origin;

/// Where a page is.
#[derive(Clone, Copy, Debug)]
pub struct PageAddress<'a> {
    /// The site.
    pub origin: &'a Origin,
    /// Its path as [`decode_path`](baton_http::decode_path) leaves it, without a slash in front.
    pub path: &'a [u8],
}

/// What a page that another server shows needs besides.
#[derive(Clone, Debug)]
pub struct CopyTerms {
    /// Its URL at home, from which its relative links count.
    pub home: String,
    /// Its URL there, for links within it.
    pub copy: String,
}

/// What a page links to, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In the order of their places, none of which overlap.
    pub links: Vec<Link>,
    /// Where links within the page (`#part`) stand.
    fragments: Vec<usize>,
    base: Base,
}

/// From where relative links count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    /// From the page itself. A `<base>` would have its place here.
    Own { place: usize },
    /// From what a `<base>` says, which is a path of the site, decoded.
    Said { place: Range<usize>, path: Vec<u8> },
    /// From elsewhere.
    Elsewhere,
}

impl Default for Base {
    fn default() -> Self {
        Self::Own { place: 0 }
    }
}

impl<'a> PageAddress<'a> {
    /// The folder from which relative links count.
    pub(super) fn folder(&self) -> &'a [u8] {
        folder(self.path)
    }
}

impl Page {
    /// Reads a page. Bytes that are no HTML have no links.
    pub fn read(html: &[u8], address: &PageAddress<'_>) -> Self {
        let pieces = pieces(html);
        let base = base(html, &pieces, address);
        let folder = match &base {
            Base::Own { .. } => address.folder(),
            Base::Said { path, .. } => folder(path),
            Base::Elsewhere => return Self { base, ..Self::default() },
        };
        let mut reader = Reader {
            html,
            origin: address.origin,
            folder,
            page: Self { base: base.clone(), ..Self::default() },
        };
        let mut has_policy = false;
        for piece in &pieces {
            match piece {
                Piece::Tag { name, place } => has_policy |= reader.tag(name, place),
                Piece::Style(place) => reader.style(place.clone()),
                Piece::Doctype { .. } => {}
            }
        }
        let mut page = reader.page;
        if has_policy {
            // It may forbid what comes from another origin.
            page.links.iter_mut().for_each(|link| link.used = Use::Pins);
        }
        page
    }

    /// The page with the links to documents away replaced: `locate` says where a document is, if it is not at home. None if
    /// nothing is to be replaced. Its answers may consist of letters, digits and `-._~:/%[]` only; others are left out.
    ///
    /// With `copy`, the page is made for another server: its relative links count from home.
    pub fn rewritten(
        &self,
        html: &[u8],
        mut locate: impl FnMut(&[u8]) -> Option<String>,
        copy: Option<&CopyTerms>,
    ) -> Option<Vec<u8>> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for link in self.links.iter().filter(|link| link.used == Use::Moves) {
            if let Some(address) = locate(&link.document).filter(|address| is_safe(address)) {
                edits.push((link.place.clone(), address));
            }
        }
        if let Some(copy) = copy.filter(|copy| is_safe(&copy.home) && is_safe(&copy.copy)) {
            edits.extend(self.fragments.iter().map(|&place| (place..place, copy.copy.clone())));
            edits.extend(self.base_edit(copy));
            edits.sort_by_key(|(place, _)| (place.start, place.end));
        }
        if edits.is_empty() {
            return None;
        }
        let added: usize = edits.iter().map(|(_, text)| text.len()).sum();
        let (mut out, mut at) = (Vec::with_capacity(html.len() + added), 0);
        for (place, text) in edits {
            out.extend_from_slice(html.get(at..place.start)?);
            out.extend_from_slice(text.as_bytes());
            at = place.end;
        }
        out.extend_from_slice(html.get(at..)?);
        Some(out)
    }

    fn base_edit(&self, copy: &CopyTerms) -> Option<(Range<usize>, String)> {
        match &self.base {
            Base::Own { place } => Some((*place..*place, format!("<base href=\"{}\">", copy.home))),
            Base::Said { place, path } => {
                let origin = copy.home.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                Some((place.clone(), format!("{origin}/{}", crate::encode(path))))
            }
            Base::Elsewhere => None,
        }
    }
}

/// A part of a page that matters.
#[derive(Debug)]
enum Piece {
    Doctype {
        end: usize,
    },
    /// A start tag from `<` to `>`.
    Tag {
        name: Vec<u8>,
        place: Range<usize>,
    },
    /// The text of a style element.
    Style(Range<usize>),
}

fn pieces(html: &[u8]) -> Vec<Piece> {
    let (mut name, mut start) = (Vec::new(), 0);
    let callback = move |event: CallbackEvent<'_>, span: Span<usize>| match event {
        CallbackEvent::OpenStartTag { name: opened } => {
            name.clear();
            name.extend_from_slice(opened);
            start = span.start;
            None
        }
        CallbackEvent::CloseStartTag { .. } => {
            Some(Piece::Tag { name: name.clone(), place: start..span.end })
        }
        CallbackEvent::EndTag { .. } => {
            name.clear();
            None
        }
        CallbackEvent::String { .. } if name == b"style" => Some(Piece::Style(span.start..span.end)),
        CallbackEvent::Doctype { .. } => Some(Piece::Doctype { end: span.end }),
        _ => None,
    };
    let mut emitter = CallbackEmitter::new(callback);
    emitter.naively_switch_states(true);
    let is_there = |piece: &Piece| match piece {
        Piece::Tag { name, place } => is_tag(html, name, place),
        Piece::Style(place) => html.get(place.clone()).is_some(),
        Piece::Doctype { end } => html.get(..*end).is_some_and(|head| head.ends_with(b">")),
    };
    let read = Tokenizer::new_with_emitter(html, emitter).map_while(Result::ok);
    read.filter(is_there).collect()
}

/// Whether a tag of that name stands there. What the tokenizer misplaces is left as it is.
fn is_tag(html: &[u8], name: &[u8], place: &Range<usize>) -> bool {
    let Some([b'<', inner @ .., b'>']) = html.get(place.clone()) else { return false };
    inner.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && inner.get(name.len()).is_none_or(|after| is_space(*after) || *after == b'/')
}

/// What the first `<base>` with an address says.
fn base(html: &[u8], pieces: &[Piece], address: &PageAddress<'_>) -> Base {
    let mut place = 0;
    let mut is_before_content = true;
    for piece in pieces {
        let (name, tag) = match piece {
            Piece::Doctype { end } if is_before_content => {
                place = *end;
                continue;
            }
            Piece::Tag { name, place } => (name, place),
            _ => continue,
        };
        if name == b"html" || name == b"head" {
            if is_before_content {
                place = tag.end;
            }
            continue;
        }
        is_before_content = false;
        if name == b"base"
            && let Some(href) = attribute(&attributes(&html[tag.clone()]), b"href")
        {
            let href = trimmed(html, tag.start + href.start..tag.start + href.end);
            return match reference::resolve(&html[href.clone()], address.origin, address.folder()) {
                Some(found) if found.path_len == href.len() => {
                    Base::Said { place: href, path: found.document }
                }
                _ => Base::Elsewhere,
            };
        }
    }
    Base::Own { place }
}

/// Collects links.
struct Reader<'a> {
    html: &'a [u8],
    origin: &'a Origin,
    folder: &'a [u8],
    page: Page,
}

impl Reader<'_> {
    /// Reads a tag; true if it is a policy for the whole page.
    fn tag(&mut self, name: &[u8], place: &Range<usize>) -> bool {
        let attributes = attributes(&self.html[place.clone()]);
        let has = |name: &[u8]| attribute(&attributes, name).is_some();
        let own_only = has(b"crossorigin") || has(b"integrity") || has(b"download");
        for Attribute { name: attribute, value } in &attributes {
            let value = trimmed(self.html, place.start + value.start..place.start + value.end);
            let used = match kind(name, attribute) {
                Kind::Address(used) => used,
                Kind::Relation => match relation(&attributes, &self.html[place.clone()]) {
                    Some(used) => used,
                    None => continue,
                },
                Kind::Candidates => {
                    for candidate in candidates(&self.html[value.clone()]) {
                        let candidate = value.start + candidate.start..value.start + candidate.end;
                        self.link(candidate, if own_only { Use::Pins } else { Use::Moves });
                    }
                    continue;
                }
                Kind::Style => {
                    self.style(value);
                    continue;
                }
                Kind::None => continue,
            };
            if attribute == b"href"
                && self.html[value.clone()].starts_with(b"#")
                && matches!(name, b"a" | b"area")
            {
                self.page.fragments.push(value.start);
            }
            self.link(value, if own_only { Use::Pins } else { used });
        }
        let text = |name: &[u8]| attribute(&attributes, name).map(|value| &self.html[place.clone()][value]);
        name == b"meta"
            && text(b"http-equiv")
                .is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"content-security-policy"))
    }

    fn style(&mut self, place: Range<usize>) {
        for url in css::urls(&self.html[place.clone()]) {
            self.link(place.start + url.place.start..place.start + url.place.end, url.used);
        }
    }

    fn link(&mut self, place: Range<usize>, used: Use) {
        if let Some(found) = reference::resolve(&self.html[place.clone()], self.origin, self.folder) {
            let place = place.start..place.start + found.path_len;
            self.page.links.push(Link { place, document: found.document, used });
        }
    }
}

/// What an attribute of an element is.
enum Kind {
    Address(Use),
    /// The address of a `<link>`.
    Relation,
    /// `srcset`
    Candidates,
    Style,
    None,
}

fn kind(element: &[u8], attribute: &[u8]) -> Kind {
    match (element, attribute) {
        (_, b"style") => Kind::Style,
        (b"a" | b"area", b"href") => Kind::Address(Use::Moves),
        (b"img" | b"source" | b"video" | b"audio" | b"input", b"src") => Kind::Address(Use::Moves),
        (b"video", b"poster") => Kind::Address(Use::Moves),
        (b"img" | b"source", b"srcset") => Kind::Candidates,
        (b"link", b"href") => Kind::Relation,
        (b"link", b"imagesrcset") => Kind::None,
        (b"script" | b"track" | b"embed" | b"iframe" | b"frame", b"src") => Kind::Address(Use::Pins),
        (b"object", b"data") | (b"use", b"href" | b"xlink:href") => Kind::Address(Use::Pins),
        _ => Kind::None,
    }
}

/// How a `<link>` uses what it names; none: it is no request (`canonical`, `alternate`, `next`).
fn relation(attributes: &[Attribute], tag: &[u8]) -> Option<Use> {
    let relations = &tag[attribute(attributes, b"rel")?];
    let mut words = relations.split(|byte| is_space(*byte));
    let is = |word: &[u8], names: &[&[u8]]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    let needs: &[&[u8]] =
        &[b"stylesheet", b"preload", b"modulepreload", b"manifest", b"prefetch", b"mask-icon"];
    if words.clone().any(|word| is(word, needs)) {
        return Some(Use::Pins);
    }
    words.any(|word| is(word, &[b"icon", b"apple-touch-icon"])).then_some(Use::Moves)
}

/// The addresses of a `srcset` (HTML, section 4.8.4.2.1).
fn candidates(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        while text.get(at).is_some_and(|byte| is_space(*byte) || *byte == b',') {
            at += 1;
        }
        if at >= text.len() {
            return found;
        }
        let start = at;
        while text.get(at).is_some_and(|byte| !is_space(*byte)) {
            at += 1;
        }
        let address = text[start..at].strip_suffix(b",").map(|_| &text[start..at]);
        if let Some(address) = address {
            let commas = address.iter().rev().take_while(|byte| **byte == b',').count();
            found.push(start..at - commas);
            continue;
        }
        found.push(start..at);
        let mut depth = 0_u32;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
    }
}

fn attribute(attributes: &[Attribute], name: &[u8]) -> Option<Range<usize>> {
    attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.clone())
}

/// Without the spaces around it, which browsers take off.
fn trimmed(html: &[u8], place: Range<usize>) -> Range<usize> {
    let text = &html[place.clone()];
    let left = text.iter().take_while(|byte| is_space(**byte)).count();
    let right = text[left..].iter().rev().take_while(|byte| is_space(**byte)).count();
    place.start + left..place.end - right
}

fn folder(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)]
}

/// Whether an address means the same in every quoting, in `srcset` and in `url(…)`.
fn is_safe(address: &str) -> bool {
    !address.is_empty()
        && address.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/%[]".contains(&byte))
}
