//! Connections that move between hosts while their client goes on: front-end, nodes and client are network namespaces.

mod bulk;
mod lacks;
mod lossy;
mod many;
mod mover;
mod requests;
