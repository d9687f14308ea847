//! The cache on real folders, one file per subject.

mod found;
mod site;
