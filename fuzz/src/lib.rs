//! Properties of any input, as plain functions: the fuzz targets call them with libFuzzer's inputs, and the tests of
//! each crate, on the stable toolchain, with every file of `corpus/`.

pub mod cluster;
pub mod converted;
pub mod documents;
pub mod fcgi;
pub mod http;
pub mod http2;
pub mod http2_connection;
pub mod http2_moved;
pub mod iolite;
pub mod iolite_reader;
pub mod names;
pub mod origin;
pub mod nginx;
pub mod passport;
pub mod pieces;
pub mod pool;
pub mod preload;
pub mod responder;
pub mod segment;
pub mod sim;
pub mod store;
pub mod tls;
pub mod tls_moved;
pub mod tls_pem;

// Only the reader of the preload library: linking all of it would replace functions of the libc.
#[path = "../../adapters/preload/src"]
#[expect(dead_code, reason = "the library needs more of it than is checked")]
mod library {
    pub(crate) mod inbox;
    pub(crate) mod lent;
    pub(crate) mod pair;
}
use library::{inbox, lent, pair};
