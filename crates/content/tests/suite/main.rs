//! The cache on real folders, one file per subject.

mod allocations;
mod coded;
mod confinement;
mod disk;
mod found;
mod listings;
mod parts;
mod replies;
mod revalidation;
mod sharing;
mod site;
