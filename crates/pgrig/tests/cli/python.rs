//! The Python package reads what pgrig wrote.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Desk;

/// Has files of the package's tests look at a record.
pub(crate) fn reads(desk: &Desk, tests: &[&str], variable: &str, record: &str) {
    // The distribution's packages are those of its own Python.
    let has = |python: &&str| {
        let has = command(python).args(["-c", IMPORTS]).stderr(Stdio::null()).status();
        has.is_ok_and(|status| status.success())
    };
    let Some(python) = ["/usr/bin/python3", "python3"].into_iter().find(has) else {
        return testing::skip::because("python3 has no matplotlib, pandas and pytest");
    };
    let output = command(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args(tests)
        .env(variable, desk.path(record))
        .output()
        .unwrap();
    assert!(output.status.success(), "{tests:?}: {}", String::from_utf8_lossy(&output.stdout));
}

const IMPORTS: &str = "import matplotlib, pandas, pytest";

/// Python, in the folder of the package's tests.
fn command(python: &str) -> Command {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let mut command = Command::new(python);
    command.env("PYTHONPATH", &package).env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(package.join("tests"));
    command
}

#[test]
fn records_of_studies_and_histograms_are_read() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let run = ["run", "mine", "--profile", "smoke", "--rounds", "2", "--out", "record"];
    desk.pgrig(&run).ended(0);
    let tests = ["test_study.py", "test_histogram.py", "test_notebook.py"];
    reads(&desk, &tests, "PGRIG_RECORD", "record");
}
