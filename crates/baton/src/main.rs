//! Baton: a web server that hands data and connections over instead of copying them.

mod app;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
