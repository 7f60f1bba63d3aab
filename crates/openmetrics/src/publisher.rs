//! The newest text, in a file or over HTTP.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::destination::Destination;
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

/// Shows the newest text. A port is served until the program ends.
#[derive(Debug)]
pub struct Publisher(Target);

#[derive(Debug)]
enum Target {
    File(PathBuf),
    Served(SocketAddr, Arc<Mutex<String>>),
}

impl Publisher {
    /// Opens the file or the port, so that a wrong one is known before time is spent, and shows a first
    /// text there.
    pub fn open(destination: &Destination, first: String) -> Result<Publisher, Error> {
        let publisher = match destination {
            Destination::File(path) => Publisher(Target::File(path.clone())),
            Destination::Address(address) => {
                let (address, shown) = serve(*address)
                    .map_err(|source| Error::Listen { address: *address, source })?;
                Publisher(Target::Served(address, shown))
            }
        };
        publisher.publish(first)?;
        Ok(publisher)
    }

    /// Replaces the text.
    pub fn publish(&self, text: String) -> Result<(), Error> {
        match &self.0 {
            Target::Served(_, shown) => {
                *shown.lock().unwrap_or_else(PoisonError::into_inner) = text;
                Ok(())
            }
            Target::File(path) => {
                replace(path, &text).map_err(|source| Error::Write { path: path.clone(), source })
            }
        }
    }

    /// Address at which it is served, with the port that the system chose for 0.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.0 {
            Target::Served(address, _) => Some(address),
            Target::File(_) => None,
        }
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

/// Answers every request with the text, on a thread that ends with the program.
fn serve(address: SocketAddr) -> io::Result<(SocketAddr, Arc<Mutex<String>>)> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let shown = Arc::new(Mutex::new(String::new()));
    let text = Arc::clone(&shown);
    thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                // A reader that has gone away is not the program's business.
                Ok(stream) => drop(answer(&stream, &text)),
                // Without descriptors, the next attempt fails at once as well.
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    });
    Ok((address, shown))
}

fn answer(stream: &TcpStream, text: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(REQUEST_MAX)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The rest of the request, up to the empty line, says nothing that matters.
    lines.map_while(Result::ok).take(100).find(String::is_empty);
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = match (method, path.split('?').next()) {
        ("GET", Some("/metrics" | "/")) => {
            let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            ("200 OK", CONTENT_TYPE, text)
        }
        ("GET", _) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "GET only\n".to_owned()),
    };
    let length = body.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// Time that a reader may take for a piece of its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a request that are read at most.
const REQUEST_MAX: u64 = 16 * 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_newest_text_is_served() {
        let destination = Destination::Address(([127, 0, 0, 1], 0).into());
        let publisher = Publisher::open(&destination, "first\n".to_owned()).unwrap();
        publisher.publish("second\n".to_owned()).unwrap();
        let check = |request: &str, status: &str, body: &str| {
            let mut stream = TcpStream::connect(publisher.address().unwrap()).unwrap();
            stream.write_all(format!("{request} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(answer.ends_with(body), "{answer}");
        };
        check("GET /metrics", "200", "\r\n\r\nsecond\n");
        check("GET /?a", "200", "\r\n\r\nsecond\n");
        check("GET /else", "404", "/metrics\n");
        check("POST /metrics", "405", "GET only\n");
    }

    #[test]
    fn a_taken_port_and_a_missing_folder_are_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = Publisher::open(&Destination::Address(address), String::new()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("listening on {address}: ")), "{error}");
        assert!(error.hint().unwrap().contains("another port"));
        let folder = tempfile::tempdir().unwrap();
        let file = Destination::File(folder.path().join("none/text"));
        let error = Publisher::open(&file, String::new()).unwrap_err();
        assert!(error.to_string().contains("none/text: No such file"), "{error}");
    }
}
