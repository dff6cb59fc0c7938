//! ..
fn main() {}
