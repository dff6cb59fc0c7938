//! Prints `docs/errors.md`.

fn main() {
    print!("{}", wire::problem::render());
}
