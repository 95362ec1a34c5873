//! The line tables for backtraces are two thirds of the program; compressed they are one.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
}
