//! Names the library as programs that were linked against the original ask for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfcgi.so.0");
}
