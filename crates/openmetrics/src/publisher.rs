//! The newest text, in a file or over HTTP.

use std::io::{self, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use web::{HostNames, PageRequest, PageServer, PageSource, WebResponse};

use crate::destination::MetricsDestination;
use crate::text::CONTENT_TYPE;

/// Reason why the text cannot be shown.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("listening on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("writing {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Error {
    /// Next step for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Listen { source, .. } if source.kind() == ErrorKind::AddrNotAvailable => {
                Some("give an address of this machine")
            }
            Error::Listen { .. } => Some("give another port, or 0 for a free one"),
            Error::Write { .. } => None,
        }
    }
}

/// Shows the newest text. A port is served until this value goes.
#[derive(Debug)]
pub struct Publisher(Target);

#[derive(Debug)]
enum Target {
    File(PathBuf),
    Served(PageServer, Arc<Newest>),
}

/// The newest text.
#[derive(Debug, Default)]
struct Newest(Mutex<String>);

impl Publisher {
    /// Opens the file or the port, so that a wrong one is known before time is spent, and shows a first
    /// text there.
    pub fn open(destination: &MetricsDestination, first: String) -> Result<Publisher, Error> {
        let publisher = match destination {
            MetricsDestination::File(path) => Publisher(Target::File(path.clone())),
            MetricsDestination::Address { address, names } => {
                let newest = Arc::<Newest>::default();
                let source = Arc::clone(&newest);
                let names = HostNames::of_this_machine(names.iter().cloned());
                let server = PageServer::open(*address, names, source)
                    .map_err(|source| Error::Listen { address: *address, source })?;
                Publisher(Target::Served(server, newest))
            }
        };
        publisher.publish(first)?;
        Ok(publisher)
    }

    /// Replaces the text.
    pub fn publish(&self, text: String) -> Result<(), Error> {
        match &self.0 {
            Target::Served(_, newest) => {
                *newest.read() = text;
                Ok(())
            }
            Target::File(path) => {
                replace(path, &text).map_err(|source| Error::Write { path: path.clone(), source })
            }
        }
    }

    /// Address at which it is served, with the port that the system chose for 0.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Target::Served(server, _) => Some(server.address()),
            Target::File(_) => None,
        }
    }
}

impl Newest {
    fn read(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader sees the old text or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    // A name that others can guess, in a directory that may be theirs as well.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => std::fs::File::create_new(&new)?.write_all(text.as_bytes())?,
    }
    std::fs::rename(new, path)
}

impl PageSource for Newest {
    fn answer(&self, request: PageRequest<'_>) -> WebResponse {
        match request.path {
            "/metrics" | "/" => WebResponse::found(CONTENT_TYPE, self.read().clone()),
            _ => WebResponse::refused(404, "the metrics are at /metrics"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn at(address: SocketAddr) -> MetricsDestination {
        MetricsDestination::Address { address, names: vec!["db1.example.org".to_owned()] }
    }

    #[test]
    fn the_newest_text_is_served() {
        let free = at(([127, 0, 0, 1], 0).into());
        let publisher = Publisher::open(&free, "first\n".to_owned()).unwrap();
        publisher.publish("second\n".to_owned()).unwrap();
        let check = |request: &str, host: &str, status: &str, body: &str| {
            let mut stream = TcpStream::connect(publisher.address().unwrap()).unwrap();
            let request = format!("{request} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(answer.ends_with(body), "{answer}");
        };
        check("GET /metrics", "127.0.0.1", "200", "\r\n\r\nsecond\n");
        check("GET /?a", "db1.example.org:9187", "200", "\r\n\r\nsecond\n");
        check("GET /else", "localhost", "404", "/metrics\n");
        check("POST /metrics", "localhost", "405", "GET only\n");
        check("GET /metrics", "evil.example", "421", "given\n");
    }

    #[test]
    fn a_taken_port_and_a_missing_folder_are_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = Publisher::open(&at(address), String::new()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("listening on {address}: ")), "{error}");
        assert!(error.hint().unwrap().contains("another port"));
        let folder = tempfile::tempdir().unwrap();
        let file = MetricsDestination::File(folder.path().join("none/text"));
        let error = Publisher::open(&file, String::new()).unwrap_err();
        assert!(error.to_string().contains("none/text: No such file"), "{error}");
    }
}
