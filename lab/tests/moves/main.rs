//! Connections that move between hosts while their client goes on: front-end, nodes and client are network namespaces.

mod agent;
mod bulk;
mod lacks;
mod link;
mod lossy;
mod many;
mod requests;
