//! Links in pages: which documents of the same site they lead to, where they stand, and how they are replaced.
//!
//! ```text
//!   bytes of a page ──► Page::read ──► links: place, document, use ──► the graph of the site
//!                                        └──► Page::rewritten ──► the same bytes, but for links to documents away
//! ```
//!
//! A page is never printed anew: a replaced link is the only difference. What a link leads to decides whether it is
//! replaced. How it is used decides whether its document may ever move: see [`Use`].

mod css;
mod link;
mod page;
mod reference;
mod style_sheet;
mod tag;

pub use link::{Link, Use};
pub use page::{CopyTerms, Page, PageAddress};
pub use style_sheet::of_style_sheet;
