//! Sets the soname under which programs linked against the original load the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfcgi.so.0");
}
