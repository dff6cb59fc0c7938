//! Makes a new migration rebuild the crate, which embeds them all.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
