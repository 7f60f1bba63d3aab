//! `--serve`: a run that draws itself in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testing::prometheus::Prometheus;

use crate::Desk;
use crate::interruption::signal;

/// A run whose page is open, and the page's address.
struct Open {
    child: Child,
    url: String,
}

fn open(desk: &Desk, arguments: &[&str]) -> Open {
    let mut child = desk.command(arguments).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_page = |line: &String| line.contains("http://") && !line.ends_with("/metrics");
    let line = lines.find(|line| line.as_ref().is_ok_and(is_page));
    let line = line.expect("an address").unwrap();
    let url = line[line.find("http://").unwrap()..].trim().to_owned();
    // What follows must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Open { child, url }
}

impl Open {
    /// Looks with a browser until the document's first tag has all of these; `|` stands between alternatives.
    fn shows(&self, desk: &Desk, wanted: &[&str]) {
        let began = Instant::now();
        loop {
            let dom = browse(desk, &self.url);
            let tag = &dom[dom.find("<html").unwrap_or(0)..];
            let tag = &tag[..tag.find('>').unwrap_or(0)];
            // The first version is that nothing has been measured yet.
            let has = |part: &&str| part.split('|').any(|one| tag.contains(one));
            if wanted.iter().all(has) && !tag.contains("data-page=\"1:") {
                assert!(dom.contains("class=\"shown\""), "{dom}");
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(240), "{wanted:?}: {tag}");
            // A browser costs more than what it looks at.
            sleep(Duration::from_secs(3));
        }
    }

    /// The first line of what a request for this path gets.
    fn status(&self, path: &str) -> String {
        let address = self.url.trim_start_matches("http://").split('/').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Sends what a stranger sends, and returns the connection.
    fn attack(&self, address: &str, head: &str) -> TcpStream {
        // The metrics may come after the page.
        testing::until("a listener", || TcpStream::connect(address).is_ok());
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("{head}\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn end(mut self) {
        signal(&self.child, Signal::INT);
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        let address = self.url.trim_start_matches("http://").split('/').next().unwrap();
        assert!(TcpStream::connect(address).is_err(), "the page is gone with the run");
    }
}

/// Has the distribution's Prometheus answer the queries of the dashboard that name none of `others`.
fn is_on_the_dashboard(prometheus: Option<Prometheus>, others: &[&str]) {
    let board = include_str!("../../../../docs/grafana/pgrig-load.json");
    match prometheus {
        Some(prometheus) => prometheus.answers(board, others),
        None => testing::skip::because("there is no prometheus"),
    }
}

fn browse(desk: &Desk, url: &str) -> String {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", desk.path("browser").display()))
        .args(["--dump-dom", url])
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts (make test installs it)");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_comparison_draws_itself_for_those_who_have_the_address() {
    let desk = Desk::new();
    crate::compare::write_work(&desk);
    // There are no intervals before five segments, which are a fortieth of the time long.
    let metrics = testing::prometheus::free_address().to_string();
    let prometheus = Prometheus::scraping(&desk.path(""), &metrics);
    let rest = ["--precision", "0.01%", "--max-time", "2min", "--serve", "--metrics", &metrics];
    let open = open(&desk, &[&crate::compare::ITSELF[..], &rest].concat());
    assert!(open.url.starts_with("http://127.0.0.1:"), "{}", open.url);
    assert_eq!(open.status("/"), "HTTP/1.1 404 Not Found");
    assert_eq!(open.status("/0123456789abcdef0123456789abcdef/page"), "HTTP/1.1 404 Not Found");
    // Throughput, the median latency and CPU over the pairs, and one more latency where there are enough.
    open.shows(&desk, &["data-state=\"running\"", ": 3/3\"|: 4/4\""]);
    let of_bench = ["(pgrig_", "pgrig_latency", "pgrig_backlog", "clients"];
    is_on_the_dashboard(prometheus, &[&of_bench[..], &["pgrig_run_"]].concat());
    open.end();
}

#[test]
fn a_study_draws_its_trial_and_its_report() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let text = std::fs::read_to_string(desk.path("mine/study.toml")).unwrap();
    desk.write("mine/study.toml", &text.replace("window = \"700ms\"", "window = \"4s\""));
    let metrics = testing::prometheus::free_address().to_string();
    let prometheus = Prometheus::scraping(&desk.path(""), &metrics);
    let run =
        ["run", "mine", "--rounds", "30", "--out", "record", "--serve", "--metrics", &metrics];
    let open = open(&desk, &run);
    // Throughput and latency of the trial under way; the report has more.
    open.shows(&desk, &["data-state=\"running\"", "data-page=", "data-now=", ": 2/2\""]);
    // This study measures nothing in pairs.
    let others =
        ["(pgrig_", "pgrig_latency", "pgrig_backlog", "clients", "pgrig_compare", "run_pairs"];
    is_on_the_dashboard(prometheus, &others);
    open.end();
}

#[test]
fn a_load_draws_itself_while_it_runs() {
    let desk = Desk::new();
    let (node, _lab) = testing::servers::server(&[]);
    desk.write("one.sql", "SELECT 1;\n");
    let place = node.endpoint().to_string();
    let metrics = testing::prometheus::free_address().to_string();
    let load =
        ["bench", "-n", "-f", "one.sql", "-T", "300", "--serve", "--metrics", &metrics, &place];
    let open = open(&desk, &load);
    assert_eq!(open.status("/"), "HTTP/1.1 404 Not Found");
    let page = open.url.trim_start_matches("http://").split('/').next().unwrap();
    // A body that is announced is neither allocated nor waited for, and who is slow keeps nobody out.
    let held: Vec<TcpStream> = [page, &metrics]
        .into_iter()
        .flat_map(|address| {
            let huge = "GET / HTTP/1.1\r\nContent-Length: 100000000000000000";
            let long = "POST / HTTP/1.1\r\nContent-Length: 5000";
            [huge, long, "GET / HTTP/1.1\r\nX:"].map(|head| open.attack(address, head))
        })
        .collect();
    // Throughput and latency.
    open.shows(&desk, &["data-state=\"running\"", ": 2/2\""]);
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(&metrics).unwrap();
        stream
            .write_all(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = ask(&metrics);
    assert!(text.contains("pgrig_transactions_total"), "{text}");
    assert!(ask("evil.example").starts_with("HTTP/1.1 421"), "a page of somebody else's asks");
    drop(held);
    open.end();
}
