//! Compresses the line tables for backtraces: uncompressed they are two thirds of the program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
}
