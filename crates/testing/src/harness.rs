//! A harness for tests whose program is also a process of what they test, by its first argument.

use std::env;
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::process::ExitCode;

use crate::skip;

/// Runs the tests one after the other, those that the command line names or all, and prints the
/// result of each and their number.
#[macro_export]
macro_rules! run {
    ($($test:ident),+ $(,)?) => {
        $crate::harness::run_named(&[$((stringify!($test), $test as fn())),+])
    };
}

/// As the macro [`run!`](crate::run), for tests with their names. With `--exact` a word of the
/// command line is a whole name, else a part of one; `--list` prints the names, as cargo's harness does.
pub fn run_named(tests: &[(&str, fn())]) -> ExitCode {
    let (options, wanted): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.starts_with('-'));
    let is_exact = options.iter().any(|option| option == "--exact");
    let is_wanted = |name: &str| match is_exact {
        true => wanted.iter().any(|word| word == name),
        false => wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())),
    };
    if options.iter().any(|option| option == "--list") {
        tests.iter().filter(|(name, _)| is_wanted(name)).for_each(|(name, _)| {
            say(&format!("{name}: test"));
        });
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, test) in tests.iter().filter(|(name, _)| is_wanted(name)) {
        skip::begin(name);
        let is_ok = catch_unwind(test).is_ok();
        let (count, verdict) = match (is_ok, skip::was_skipped()) {
            (false, _) => (&mut failed, "FAILED"),
            (true, true) => (&mut skipped, "skipped"),
            (true, false) => (&mut passed, "ok"),
        };
        *count += 1;
        say(&format!("test {name} ... {verdict}"));
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    say(&format!("\ntest result: {result}. {passed} passed; {failed} failed; {skipped} skipped\n"));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a line to standard output.
///
/// # Panics
/// If standard output is closed.
pub fn say(text: &str) {
    writeln!(io::stdout(), "{text}").expect("standard output is open");
}
