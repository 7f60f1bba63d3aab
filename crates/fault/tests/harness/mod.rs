//! A harness for tests whose program is also a process of what they test, by its first argument.

use std::env;
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::process::ExitCode;

/// Runs the tests, those that the command line names or all, one after the other, and says how
/// each went.
macro_rules! run {
    ($($test:ident),+ $(,)?) => {
        $crate::harness::run_named(&[$((stringify!($test), $test as fn())),+])
    };
}
pub(crate) use run;

pub(crate) fn run_named(tests: &[(&str, fn())]) -> ExitCode {
    let wanted: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut code = ExitCode::SUCCESS;
    for (name, test) in tests {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let verdict = if catch_unwind(test).is_ok() { "ok" } else { "FAILED" };
        say(&format!("test {name} ... {verdict}"));
        if verdict != "ok" {
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// A line on standard output.
pub(crate) fn say(text: &str) {
    writeln!(io::stdout(), "{text}").expect("somebody to tell");
}
