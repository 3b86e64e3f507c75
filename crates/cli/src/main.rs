//! The `floatgate` command.
fn main() {}
