//! The pages in a real browser: every chart draws, nothing is reported to the console.
//!
//! Needs `chromium` (a Debian package); fails where there is none.

mod example;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Browsers that take the same options, by the names they are installed under.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

#[test]
fn every_chart_of_a_report_draws() {
    // Throughput, latency, wait events, CPU of the processes and of the machine; percentiles.
    check(&example::report(|report| report.html()), "6/6");
}

#[test]
fn curves_and_a_long_trial_draw() {
    // Two curves; throughput, latency, errors, wait events; percentiles.
    check(&example::sweep(|report| report.html()), "7/7");
}

#[test]
fn every_chart_of_a_single_load_draws() {
    // Throughput, latency; percentiles.
    check(&example::bench().html(), "3/3");
}

fn check(html: &str, charts: &str) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    std::fs::write(&page, html).unwrap();
    let (dom, console) = open(&page, &folder.path().join("profile"));
    assert!(dom.contains(&format!("data-charts=\"{charts}\"")), "{}", status(&dom));
    assert!(!dom.contains("data-errors="), "{}", status(&dom));
    assert_eq!(console, Vec::<String>::new());
    assert!(dom.contains("<canvas"));
}

/// The page after its scripts have run, and what they left on the console.
fn open(page: &Path, profile: &Path) -> (String, Vec<String>) {
    let output = Command::new(browser())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=5000"])
        .args(["--window-size=1280,4000", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    let console = messages.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.collect())
}

fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = BROWSERS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    found
        .into_iter()
        .find(|candidate| candidate.is_file())
        .expect("no browser: install the package chromium (make setup does)")
}

/// The first tag of the document, which carries what the page says of itself.
fn status(dom: &str) -> &str {
    let start = dom.find("<html").unwrap_or(0);
    let end = dom[start..].find('>').map_or(dom.len(), |end| start + end);
    &dom[start..end]
}
