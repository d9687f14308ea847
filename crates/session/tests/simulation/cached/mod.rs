//! Routes with the shared cache: what their origin has, and the laws for what clients get of it.
//!
//! A [`Resource`] changes as time passes. Each of its [versions](Version) has bytes of its own, and the origin says in the
//! head of a response which it is. So the model needs no memory: it computes the bytes, and compares them.

mod resource;
mod shelf;
mod wanted;

pub(crate) use resource::{Ranges, Resource, Validator, Version, range_in};
pub(crate) use shelf::{CACHED, REQUESTS_MAX, Shelf};
pub(crate) use wanted::Wanted;
