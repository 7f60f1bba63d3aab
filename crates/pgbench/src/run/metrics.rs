//! `--metrics`: what has been counted so far, as OpenMetrics text, in a file or over HTTP.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use load::Event;
use record::{Counts, Interval};
use stats::Latency;

use crate::complaint::{Complaint, system_error};

/// Time that a reader may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The content type of the format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Destination of the text.
enum Target {
    /// A file, replaced whole.
    File(PathBuf),
    /// Anyone who asks a thread at this address.
    Served(SocketAddr, Arc<Mutex<String>>),
}

/// Sums up a run and shows the sums.
pub(super) struct Metrics {
    target: Target,
    sums: Sums,
    failed: Option<Complaint>,
}

/// Everything since the load began.
#[derive(Default)]
struct Sums {
    clients: u32,
    counts: Counts,
    latency: Latency,
    backlog: u64,
}

impl Metrics {
    /// Opens the file or the port, so that a wrong one is known before time is spent.
    ///
    /// # Errors
    /// When it cannot be written to, or listened on.
    pub(super) fn open(target: &str) -> Result<Self, Complaint> {
        let target = match target.parse::<SocketAddr>() {
            Ok(address) => {
                let (address, shown) = serve(address)?;
                Target::Served(address, shown)
            }
            Err(_) if is_name_and_port(target) || target.parse::<IpAddr>().is_ok() => {
                let text = format!("invalid address for --metrics: \"{target}\"");
                let hint = "give an IP address and a port, as in 127.0.0.1:9187, or a file";
                return Err(Complaint::error(text).with_our_hint(hint));
            }
            Err(_) => Target::File(PathBuf::from(target)),
        };
        let metrics = Metrics { target, sums: Sums::default(), failed: None };
        metrics.publish()?;
        Ok(metrics)
    }

    /// Address at which it is served, with the port that the system chose for 0.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self.target {
            Target::Served(address, _) => Some(address),
            Target::File(_) => None,
        }
    }

    /// Takes what happens into the sums. What goes wrong is told at the end.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Connecting { done, .. } => self.sums.clients = *done,
            Event::Interval(intervals) => {
                intervals.iter().for_each(|interval| self.sums.add(interval));
            }
            _ => return,
        }
        if self.failed.is_none() {
            self.failed = self.publish().err();
        }
    }

    /// Ends it, and returns the first error, if there was one.
    ///
    /// # Errors
    /// The first of it.
    pub(super) fn finish(self) -> Result<(), Complaint> {
        self.failed.map_or(Ok(()), Err)
    }

    fn publish(&self) -> Result<(), Complaint> {
        let text = self.sums.text();
        match &self.target {
            Target::Served(_, shown) => {
                *shown.lock().unwrap_or_else(PoisonError::into_inner) = text;
                Ok(())
            }
            Target::File(path) => replace(path, &text).map_err(|error| {
                let (path, reason) = (path.display(), system_error(&error));
                Complaint::error(format_args!("could not write file \"{path}\": {reason}"))
            }),
        }
    }
}

/// A reader sees the old text or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    // A name that others can guess, in a directory that may be theirs as well.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => std::fs::File::create_new(&new)?.write_all(text.as_bytes())?,
    }
    std::fs::rename(new, path)
}

/// Answers every request with the text, on a thread that ends with the program.
fn serve(address: SocketAddr) -> Result<(SocketAddr, Arc<Mutex<String>>), Complaint> {
    let failed = |error: std::io::Error| {
        let reason = system_error(&error);
        Complaint::error(format_args!("could not listen on {address} for --metrics: {reason}"))
            .with_our_hint(match error.kind() {
                ErrorKind::AddrNotAvailable => "give an address of this machine",
                _ => "give another port, or 0 for a free one",
            })
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let shown = Arc::new(Mutex::new(String::new()));
    let text = Arc::clone(&shown);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A reader that has gone away is not the run's business.
            let _ = answer(stream, &text);
        }
    });
    Ok((address, shown))
}

/// `localhost:9187` and `:9187`, which would be odd names for a file.
fn is_name_and_port(target: &str) -> bool {
    target.rsplit_once(':').is_some_and(|(name, port)| {
        !name.contains('/') && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn answer(stream: TcpStream, text: &Mutex<String>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let mut lines = BufReader::new(&stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The rest of the request, up to the empty line, says nothing that matters.
    lines.map_while(Result::ok).take(100).find(String::is_empty);
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split('?').next()) {
        ("GET", Some("/metrics" | "/")) => {
            ("200 OK", text.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        ("GET", _) => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET only\n".to_owned()),
    };
    let length = body.len();
    write!(
        &stream,
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

impl Sums {
    fn add(&mut self, interval: &Interval) {
        self.counts.add(&interval.counts);
        self.latency.merge(&interval.latency);
        self.backlog = interval.backlog;
    }

    /// The exposition: families with their help and type, `# EOF` at the end.
    fn text(&self) -> String {
        let mut text = String::new();
        let counts = &self.counts;
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# TYPE pgrig_{name} {kind}\n# HELP pgrig_{name} {help}");
            for (sample, value) in samples {
                let _ = writeln!(text, "pgrig_{name}{sample} {value}");
            }
        };
        let plain = |value: u64| [(String::new(), value as f64)];
        let total = |value: u64| [("_total".to_owned(), value as f64)];
        family("clients", "gauge", "Clients that are connected.", &plain(self.clients.into()));
        family("transactions", "counter", "Successful transactions.", &total(counts.transactions));
        let kinds = [
            ("serialization", counts.serialization_failures),
            ("deadlock", counts.deadlock_failures),
            ("other", counts.other_failures),
        ];
        let failed = kinds.map(|(kind, n)| (format!("_total{{kind=\"{kind}\"}}"), n as f64));
        family("failed_transactions", "counter", "Transactions that failed, by kind.", &failed);
        let help = "Transactions of a schedule that were too late to be started.";
        family("skipped_transactions", "counter", help, &total(counts.skipped));
        family("late_transactions", "counter", "Transactions above -L.", &total(counts.late));
        family("retries", "counter", "Tries after the first.", &total(counts.retries));
        let errors = counts.errors.iter();
        let errors: Vec<_> = errors
            .map(|(state, n)| (format!("_total{{sqlstate=\"{state}\"}}"), *n as f64))
            .collect();
        family("errors", "counter", "Errors of servers and connections, retried or not.", &errors);
        family("reconnects", "counter", "Connections made again.", &total(counts.reconnects));
        family("aborted_clients", "gauge", "Clients that gave up.", &plain(counts.aborted_clients));
        let help = "Transactions due but not started at the end of the last interval.";
        family("backlog", "gauge", help, &plain(self.backlog));
        let quantile = |q: f64| self.latency.quantile_ns(q).map(|ns| ns as f64 / 1e9);
        let mut latency: Vec<_> = [0.5, 0.9, 0.95, 0.99, 0.999]
            .iter()
            .filter_map(|q| Some((format!("{{quantile=\"{q}\"}}"), quantile(*q)?)))
            .collect();
        latency.push(("_count".to_owned(), self.latency.count() as f64));
        latency.push(("_sum".to_owned(), self.latency.sum_ns() as f64 / 1e9));
        let help = "Latency of successful transactions, from the intended start.";
        family("latency_seconds", "summary", help, &latency);
        text.push_str("# EOF\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_an_exposition() {
        let mut sums = Sums { clients: 3, ..Sums::default() };
        sums.counts.transactions = 41;
        sums.counts.deadlock_failures = 2;
        sums.counts.errors.insert("40P01".to_owned(), 5);
        sums.latency.record_ns(2_000_000);
        let text = sums.text();
        for line in [
            "# TYPE pgrig_transactions counter",
            "pgrig_transactions_total 41",
            "pgrig_clients 3",
            "pgrig_failed_transactions_total{kind=\"deadlock\"} 2",
            "pgrig_errors_total{sqlstate=\"40P01\"} 5",
            "# TYPE pgrig_latency_seconds summary",
            "pgrig_latency_seconds_count 1",
            "pgrig_latency_seconds_sum 0.002",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line:?} in {text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        // Samples stand with their family, and each family stands once.
        let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names: Vec<_> = families.filter_map(|line| line.split(' ').next()).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn a_name_with_a_port_is_no_file() {
        for target in ["localhost:9187", ":9187"] {
            let complaint = Metrics::open(target).err().expect("no file").to_string();
            assert!(complaint.contains("invalid address for --metrics"), "{complaint}");
        }
    }

    #[test]
    fn a_taken_port_is_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let complaint = Metrics::open(&address).err().expect("it is taken").to_string();
        let expected =
            format!("could not listen on {address} for --metrics: Address already in use");
        assert!(complaint.contains(&expected), "{complaint}");
    }
}
