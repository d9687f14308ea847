//! Programs in C with the library, between each other and between others, and peers that do not keep the rules.

mod chains;
mod ends;
mod files;
mod hostile;
mod program;
mod rules;
