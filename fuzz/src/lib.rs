//! What must hold of any input whatever, as plain functions: the fuzz targets call them with inputs that
//! libFuzzer invents, and the tests of each crate, on the stable toolchain, with every file of `corpus/`.

pub mod fcgi;
pub mod http;
pub mod sim;
