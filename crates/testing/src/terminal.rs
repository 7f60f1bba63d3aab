//! A test at a terminal of its own, and a process that types there as an attacker would.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::skip;

/// Runs a test at a terminal: the test's program starts itself once more below script(1), where
/// `body` runs. `test` is the test's full name. Whatever was typed at the terminal when `body` is
/// over, as by TIOCSTI, fails the test. Returns what the terminal was sent; none in the inner run.
///
/// # Panics
/// Where `body` does, and where something was typed.
pub fn at_a_terminal(test: &str, body: impl FnOnce()) -> Option<String> {
    if std::env::var_os(INNER).is_some_and(|inner| inner == test) {
        body();
        return None;
    }
    if !Path::new(SCRIPT).is_file() {
        skip::because("needs script(1)");
        return None;
    }
    let own = std::env::current_exe().expect("the test's own program");
    // What was typed is a whole line, which is there to be read without an end.
    let line = format!(
        "'{}' --exact {test} --nocapture; code=$?; stty -icanon -echo min 0 time 1; \
         echo \"{TYPED}$(cat)\"; exit $code",
        own.display()
    );
    let mut command = Command::new(SCRIPT);
    command.args(["-qec", &line, "/dev/null"]).env(INNER, test);
    // The end of its input would be one at the terminal: it stays open meanwhile.
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("script(1) runs");
    let stdin = child.stdin.take();
    let output = child.wait_with_output().expect("script(1) ends");
    drop(stdin);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let typed = said.rsplit(TYPED).next().unwrap_or_default().trim();
    assert_eq!(typed, "", "typed at the terminal; it was sent: {said}");
    Some(said)
}

/// A program for perl that types at its terminal, which a shell would obey. It ends with
/// [`NO_TERMINAL`] where it has none, and with 0 where it has typed.
pub const TYPING: &str = r#"open(my $t, "+<", "/dev/tty") or exit 7;
    for my $c (split //, "owned\n") { ioctl($t, 0x5412, $c) or exit 8; }"#;

/// Exit code of a process without a terminal.
pub const NO_TERMINAL: i32 = 7;

const SCRIPT: &str = "/usr/bin/script";
const INNER: &str = "PGRIG_TEST_AT_A_TERMINAL";
const TYPED: &str = "typed: ";
