//! One version and one format, wherever they are written by hand.

use std::path::Path;

fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page has a text at least once.
fn check(path: &str, expected: &str) {
    assert!(page(path).contains(expected), "{path} has no {expected:?}");
}

/// Wherever a page has what comes before a version, this version comes after it.
fn check_each(path: &str, before: &str, after: &str) {
    let version = env!("CARGO_PKG_VERSION");
    let text = page(path);
    let mut n = 0;
    for rest in text.split(before).skip(1).filter(|rest| rest.starts_with(char::is_numeric)) {
        let found: String = rest.chars().take(version.len() + after.len()).collect();
        assert_eq!(found, format!("{version}{after}"), "{path}, after {before}");
        n += 1;
    }
    assert!(n > 0, "{path} has no {before}");
}

#[test]
fn the_version_is_the_same_wherever_it_is_written() {
    let version = env!("CARGO_PKG_VERSION");
    let minor = version.rsplit_once('.').expect("three numbers").0;
    check("python/pyproject.toml", &format!("\nversion = \"{version}\"\n"));
    check("docs/stability.md", &format!("pgrig is at version {minor}. "));
    check_each("README.md", "pgrig-", "-x86_64-linux");
    check_each("README.md", "pgrig_", "_amd64.deb");
    check_each("docs/ci.md", "pgrig-", "-x86_64-linux");
    for name in ["extension", "patch", "schema"] {
        check_each(&format!("docs/examples/workflows/{name}.yml"), "pgrig-", "-x86_64-linux");
    }
    // The first section is that of the version, or of what comes after it.
    let changes = page("CHANGELOG.md");
    let first = changes.split("\n## ").nth(1).expect("a section");
    assert!(first.starts_with(version) || first.starts_with("Unreleased\n"), "{first}");
}

#[test]
fn the_format_of_records_is_the_same_wherever_it_is_written() {
    let format = record::FORMAT;
    check("docs/stability.md", &format!("| `record.json` | {format} |\n"));
    check("python/pgrig/record.py", &format!("\nFORMAT = {format}\n"));
    for name in ["record", "trial", "pairs"] {
        check(&format!("docs/{name}.schema.json"), &format!(" of a record, format {format}\","));
    }
}

#[test]
fn the_version_of_rust_is_the_same_wherever_it_is_written() {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    check("docs/install.md", &format!("with Rust {rust} and a C compiler"));
    check("docs/install.md", &format!("install Rust {rust} by rustup"));
}

#[test]
fn the_version_of_pg_governor_is_the_same_wherever_it_is_written() {
    let control = page("extension/pg_governor/pg_governor.control");
    let version =
        control.split("default_version = '").nth(1).and_then(|rest| rest.split('\'').next());
    let version = version.expect("a version");
    check("extension/pg_governor/debian/changelog", &format!("pg-governor ({version}) "));
    check("extension/pg_governor/CHANGELOG.md", &format!("\n## {version}\n"));
}
