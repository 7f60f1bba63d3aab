//! The command line: arguments, progress, exit codes. The only crate that prints.

fn main() {}
