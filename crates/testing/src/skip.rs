//! A test that cannot run here says so, and is counted.
//!
//! Cargo's harness knows no skipped tests: one that returns early has passed. A skip is therefore
//! printed where the harness does not capture it, and added to the file that the environment
//! variable `PGRIG_TESTS_SKIPPED` names; `scripts/test` counts and prints what is in there.
//! `PGRIG_TESTS_MUST_RUN=1` turns every skip into a failure; `PGRIG_TESTS_MUST_RUN=unless-root`
//! every skip but those for want of root.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::{env, fs, thread};

/// Skips the running test, or the rest of it: `return skip::because("needs FUSE")`.
///
/// # Panics
/// If tests must run.
pub fn because(reason: impl Display) {
    record(&reason.to_string(), false);
}

/// True if the tests run as root. Call [`no_root`] where that is needed and `false`.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Skips the running test, or the rest of it, because only root can do it. `scripts/test` runs it
/// again as root.
///
/// # Panics
/// If tests must run.
pub fn no_root() {
    record(NEEDS_ROOT, true);
}

/// Mark by which `scripts/test` recognises the tests that it runs again as root.
const NEEDS_ROOT: &str = "needs root";

/// Name of a test whose thread has no name, and whether it was skipped.
#[derive(Default)]
struct Running {
    name: String,
    is_skipped: bool,
}

thread_local! {
    static RUNNING: RefCell<Running> = RefCell::default();
}

/// The harness of this crate begins a test.
pub(crate) fn begin(name: &str) {
    RUNNING.set(Running { name: name.to_owned(), is_skipped: false });
}

/// True if the test that began last was skipped.
pub(crate) fn was_skipped() -> bool {
    RUNNING.with_borrow(|running| running.is_skipped)
}

fn record(reason: &str, is_for_root: bool) {
    RUNNING.with_borrow_mut(|running| running.is_skipped = true);
    let must_run = env::var("PGRIG_TESTS_MUST_RUN").unwrap_or_default();
    let is_tolerated = match must_run.as_str() {
        "" | "0" => true,
        "unless-root" => is_for_root,
        _ => false,
    };
    assert!(is_tolerated, "skipped ({reason}), but PGRIG_TESTS_MUST_RUN={must_run}");
    let test = match RUNNING.with_borrow(|running| running.name.clone()) {
        name if name.is_empty() => thread::current().name().unwrap_or("?").to_owned(),
        name => name,
    };
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("?"));
    let file_name = program.file_name().unwrap_or_default().to_string_lossy();
    // Without the hash that cargo adds.
    let target = file_name.rsplit_once('-').map_or(&*file_name, |(target, _)| target);
    // Not by a macro, whose words a test that passes keeps to itself.
    let _ = writeln!(std::io::stderr(), "skipped: {target}::{test}: {reason}");
    let Some(file) = env::var_os("PGRIG_TESTS_SKIPPED") else { return };
    let mut file =
        fs::OpenOptions::new().append(true).create(true).open(file).expect("PGRIG_TESTS_SKIPPED");
    let directory = env::current_dir().unwrap_or_default();
    let (directory, program) = (directory.display(), program.display());
    // One write, as other tests add their lines at the same time.
    let line = format!("{target}::{test}\t{reason}\t{directory}\t{program}\t{test}\n");
    file.write_all(line.as_bytes()).expect("PGRIG_TESTS_SKIPPED");
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// A skip in a process of its own: whether the test passed, and what was recorded.
    fn skip(test: &str, must_run: &str) -> (bool, String) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", &format!("skip::tests::{test}")])
            .env("PGRIG_TESTS_SKIPPED", file.path())
            .env("PGRIG_TESTS_MUST_RUN", must_run)
            .output()
            .unwrap();
        let told = std::fs::read_to_string(file.path()).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told.is_empty(), !said.contains("skipped: testing::skip::tests::"), "{said}");
        (output.status.success(), told)
    }

    #[test]
    fn a_skip_is_recorded_or_fails() {
        let check = |test: &str, must_run: &str, expected: bool| {
            let (passed, told) = skip(test, must_run);
            assert_eq!(passed, expected, "{test} {must_run}");
            assert_eq!(told.lines().count(), usize::from(expected), "{told}");
        };
        check("for_a_reason", "", true);
        check("for_a_reason", "0", true);
        check("for_a_reason", "1", false);
        check("for_a_reason", "unless-root", false);
        check("for_want_of_root", "", true);
        check("for_want_of_root", "1", false);
        check("for_want_of_root", "unless-root", true);
        let (_, told) = skip("for_a_reason", "");
        let mut columns = told.split('\t');
        assert_eq!(columns.next(), Some("testing::skip::tests::for_a_reason"));
        assert_eq!(columns.next(), Some("needs a moon"));
    }

    #[test]
    #[ignore = "run by the other test"]
    fn for_a_reason() {
        super::because("needs a moon");
    }

    #[test]
    #[ignore = "run by the other test"]
    fn for_want_of_root() {
        super::no_root();
    }
}
