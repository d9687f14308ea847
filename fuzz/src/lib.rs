//! What must hold of any input whatever, as plain functions: the fuzz targets call them with inputs that
//! libFuzzer invents, and the tests of each crate, on the stable toolchain, with every file of `corpus/`.

pub mod fcgi;
pub mod http;
pub mod pieces;
pub mod preload;
pub mod responder;
pub mod sim;

// Of the preload library only its reader: whoever links against all of it has the functions of the libc replaced.
#[path = "../../adapters/preload/src"]
#[expect(dead_code, reason = "the library needs more of it than is checked")]
mod library {
    pub(crate) mod inbox;
    pub(crate) mod pair;
}
use library::{inbox, pair};
