//! Waiting until a program of a machine is ready.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use lab::{ProcessAct, Station, wait_until};
use server::{Limits, LoadControl, StopUrgency};
use spec::{ReadyCondition, ReadyWhen};

use crate::error::Error;
use crate::names::Names;

/// The machine or process that is waited for.
pub(crate) struct Awaited<'a> {
    pub(crate) station: &'a Station,
    /// The process, whose end ends the waiting; none for the whole machine.
    pub(crate) process: Option<&'a str>,
    /// The address that its queries go to.
    pub(crate) conninfo: Option<&'a str>,
    pub(crate) names: &'a Names,
    pub(crate) control: &'a LoadControl,
}

impl Awaited<'_> {
    /// Waits until it is ready.
    pub(crate) fn wait(&self, ready: &ReadyCondition) -> Result<(), Error> {
        let mut said = "nothing yet".to_owned();
        let (began, mut ended_after) = (Instant::now(), None);
        let is_ready = wait_until(Duration::from_millis(ready.within_ms), || {
            if self.control.urgency() != StopUrgency::None {
                return Err(Error::Interrupted { doing: "waiting for machines" });
            }
            if let Some(process) = self.process
                && self.station.process(process, ProcessAct::Look)? == 0
            {
                ended_after = Some(began.elapsed());
                return Ok(Some(()));
            }
            match self.look(&ready.when) {
                Ok(()) => Ok(Some(())),
                Err(why) => {
                    said = why;
                    // A question costs more than a look.
                    std::thread::sleep(PAUSE);
                    Ok::<_, Error>(None)
                }
            }
        })?;
        let why = match (ended_after, is_ready) {
            (None, Some(())) => return Ok(()),
            (Some(after), _) => {
                format!("ended after {:.1} s, before it was ready ({said})", after.as_secs_f64())
            }
            (None, None) => format!("is not ready within {}: {said}", words(ready.within_ms)),
        };
        Err(Error::NotReady { node: self.called(), why, log: self.station.log_tail() })
    }

    fn called(&self) -> String {
        let name = self.station.name();
        self.process.map_or_else(|| name.to_owned(), |process| format!("{process} of {name}"))
    }

    /// Looks once; says what is in the way.
    fn look(&self, when: &ReadyWhen) -> Result<(), String> {
        match when {
            ReadyWhen::Port(address) => connect(&self.names.fill(address)).map(drop),
            ReadyWhen::Http(url) => get(&self.names.fill(url)),
            ReadyWhen::Log(text) => {
                let log = self.station.log_text();
                match log.contains(&self.names.fill(text)) {
                    true => Ok(()),
                    false => Err(format!("no line of its log has \"{text}\"")),
                }
            }
            ReadyWhen::Sql(query) => {
                let conninfo = self.conninfo.ok_or("it has no clients and no server")?;
                asks(conninfo, &self.names.fill(query))
            }
        }
    }
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let text = |error: std::io::Error| format!("{address}: {error}");
    let mut addresses = address.to_socket_addrs().map_err(text)?;
    let first = addresses.next().ok_or_else(|| format!("{address} is no address"))?;
    let stream = TcpStream::connect_timeout(&first, PATIENCE).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    Ok(stream)
}

/// A GET whose status is 200 to 299.
fn get(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("http://").ok_or_else(|| format!("{url} is no http:// address"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = connect(address)?;
    let text = |error: std::io::Error| format!("{url}: {error}");
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut head = [0; 64];
    let mut length = 0;
    while length < head.len() {
        match stream.read(&mut head[length..]).map_err(text)? {
            0 => break,
            read => length += read,
        }
    }
    let text = String::from_utf8_lossy(&head[..length]);
    let line = text.lines().next().ok_or_else(|| format!("{url} gives nothing"))?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(()),
        _ => Err(format!("{url}: {line}")),
    }
}

/// A query that gives true.
fn asks(conninfo: &str, query: &str) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let conninfo = server::resolve_conninfo(conninfo).map_err(|error| text(&error))?;
    let limits = Limits { connect: PATIENCE, answer: Some(PATIENCE), ..Limits::of_questions() };
    let mut client = server::connect(&conninfo, &limits).map_err(|error| text(&error))?;
    let said = client.simple_query(query).map_err(|error| server::message::with_detail(&error))?;
    let value = said.iter().find_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    });
    match value.flatten().as_deref() {
        Some("t") => Ok(()),
        Some(other) => Err(format!("{query} gives {other}")),
        None => Err(format!("{query} gives nothing")),
    }
}

fn words(ms: u64) -> String {
    format!("{:.0} s", ms as f64 / 1e3)
}

/// Longer than the answer of any server that is there.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_page_is_there_if_its_status_says_so() {
        let check = |answer: &'static str, expected: Result<(), &str>| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/health", listener.local_addr().unwrap());
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                // What is not read would make the end of the connection an error.
                let mut request = [0; 1024];
                let mut length = 0;
                while !request[..length].ends_with(b"\r\n\r\n") {
                    length += stream.read(&mut request[length..]).unwrap();
                }
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let said = get(&url).map_err(|why| why.replace(&url, "URL"));
            server.join().unwrap();
            assert_eq!(said, expected.map_err(str::to_owned), "{answer}");
        };
        check("HTTP/1.0 200 OK\r\n\r\n", Ok(()));
        check(
            "HTTP/1.0 503 Service Unavailable\r\n\r\n",
            Err("URL: HTTP/1.0 503 Service Unavailable"),
        );
        check("", Err("URL gives nothing"));
    }
}
