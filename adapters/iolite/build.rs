//! Sets the soname that programs record: the number counts changes of the interface that break them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbaton_iolite.so.0");
}
