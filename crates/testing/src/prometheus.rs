//! The distribution's Prometheus, and dashboards that ask it as Grafana does.

use std::fs::{self, File};
use std::io::{Error, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::LONG;

/// A server that scrapes one address five times a second, until it is dropped.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

/// An address of this machine that nobody listens at.
///
/// # Panics
/// If Prometheus is not installed.
#[must_use]
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a free port")
}

impl Prometheus {
    /// Starts one with its files in `folder`; none where Prometheus is not installed.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn scraping(folder: &Path, target: &str) -> Option<Prometheus> {
        Command::new("prometheus").arg("--version").output().ok()?;
        let (address, log) = (free_address(), folder.join("prometheus.log"));
        let config = folder.join("prometheus.yml");
        let text = format!(
            "scrape_configs:\n- job_name: pgrig\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  \
             static_configs:\n  - targets: ['{target}']\n"
        );
        fs::write(&config, text).expect("its configuration");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(File::create(&log).expect("its log"))
            .spawn()
            .expect("prometheus starts");
        Some(Prometheus { child, address, log })
    }

    /// Waits until each query of a dashboard has an answer, the variable `instance` standing for all of its
    /// values; queries that name one of `others` need none.
    ///
    /// # Panics
    /// If Prometheus does not understand one, or if one has no answer after three minutes.
    #[track_caller]
    pub fn answers(&self, board: &str, others: &[&str]) {
        let board: Value = serde_json::from_str(board).expect("JSON");
        let mut variables = board["templating"]["list"].as_array().into_iter().flatten();
        let variable = variables.find(|one| one["name"] == "instance");
        let values = variable.and_then(|one| one["query"].as_str()).expect("the variable instance");
        let values = values.trim_start_matches("label_values(").trim_end_matches(", instance)");
        let panels = board["panels"].as_array().expect("panels").iter();
        let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("queries"));
        let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
        let asked: Vec<&str> =
            queries.filter(|query| !others.iter().any(|other| query.contains(other))).collect();
        assert!(!asked.is_empty(), "no query of the dashboard is left");
        let deadline = Instant::now() + LONG;
        let mut silent = asked;
        while !silent.is_empty() {
            if let Some(instances) = self.instances(values) {
                silent.retain(|query| !self.has(&query.replace("$instance", &instances)));
            }
            if Instant::now() > deadline {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                panic!("without an answer: {silent:#?}\n{log}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the newest value of a panel's query is this one, of each of its series.
    ///
    /// # Panics
    /// If it is another one after three minutes.
    #[track_caller]
    pub fn shows(&self, board: &str, panel: &str, value: &str) {
        let board: Value = serde_json::from_str(board).expect("JSON");
        let mut panels = board["panels"].as_array().expect("panels").iter();
        let panel = panels.find(|one| one["title"] == panel).expect("the panel");
        let query = panel["targets"][0]["expr"].as_str().expect("a query");
        let deadline = Instant::now() + LONG;
        loop {
            let found = self.get(&format!("query?query={}", encoded(query))).unwrap_or_default();
            let series = found["result"].as_array().map_or(&[][..], Vec::as_slice);
            if !series.is_empty() && series.iter().all(|one| one["value"][1] == value) {
                return;
            }
            assert!(Instant::now() < deadline, "{query} is not {value}: {found}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The values of the variable as a regular expression in a query; none before the first scrape.
    fn instances(&self, selector: &str) -> Option<String> {
        let found =
            self.get(&format!("label/instance/values?match[]={}", encoded(selector))).ok()?;
        let values = found.as_array()?.iter().filter_map(Value::as_str);
        let values: Vec<String> = values.map(|value| value.replace('.', "\\\\.")).collect();
        (!values.is_empty()).then(|| values.join("|"))
    }

    /// True if a query had an answer in the last minutes.
    fn has(&self, query: &str) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
        let (query, from) = (encoded(query), now - 300);
        let path = format!("query_range?query={query}&start={from}&end={now}&step=1");
        let found = self.get(&path).unwrap_or_else(|error| panic!("{query}: {error}"));
        found["result"].as_array().is_some_and(|series| !series.is_empty())
    }

    /// The data of an answer.
    fn get(&self, path: &str) -> Result<Value, Error> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let answer: Value = serde_json::from_str(body).map_err(|_| Error::other(text.clone()))?;
        match answer["status"] == "success" {
            true => Ok(answer["data"].clone()),
            false => Err(Error::other(body)),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Text in an address.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
