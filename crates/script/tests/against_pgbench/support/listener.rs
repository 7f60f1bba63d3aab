//! A server that accepts everything and remembers it: what pgbench sends, whether or not it is
//! SQL.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

/// A statement as it came: the text, and the parameters if it was bound.
pub(crate) type Statement = (Vec<u8>, Vec<Option<Vec<u8>>>);

pub(crate) struct Listener {
    directory: TempDir,
    heard: Arc<Mutex<Vec<Statement>>>,
}

impl Listener {
    /// Listen on a socket of its own. The thread ends with the process.
    pub(crate) fn start() -> Listener {
        let directory = tempfile::tempdir().expect("a directory");
        let listener =
            UnixListener::bind(directory.path().join(".s.PGSQL.5432")).expect("a socket");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A connection that ends in mid-message has nothing more to tell.
                let _ = serve(&stream, &shared);
            }
        });
        Listener { directory, heard }
    }

    /// Where the socket is.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What came since the last call.
    pub(crate) fn heard(&self) -> Vec<Statement> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

fn serve(stream: &UnixStream, heard: &Mutex<Vec<Statement>>) -> io::Result<()> {
    let mut input = BufReader::new(stream);
    let mut output = stream;
    let _startup = body(&mut input)?;
    let mut hello = message(b'R', &0_i32.to_be_bytes());
    hello.extend(message(b'S', b"server_version\x0015.0\0"));
    hello.extend(message(b'S', b"client_encoding\0SQL_ASCII\0"));
    hello.extend(message(b'K', &[0; 8]));
    hello.extend(message(b'Z', b"I"));
    output.write_all(&hello)?;
    let mut parsed = Vec::new();
    loop {
        let mut tag = [0];
        input.read_exact(&mut tag)?;
        let body = body(&mut input)?;
        let answer = match tag[0] {
            b'Q' => {
                heard.lock().unwrap().push((string(&body).to_vec(), Vec::new()));
                [message(b'C', b"OK\0"), message(b'Z', b"I")].concat()
            }
            b'P' => {
                let name = string(&body);
                parsed = string(&body[name.len() + 1..]).to_vec();
                message(b'1', b"")
            }
            b'B' => {
                heard.lock().unwrap().push((parsed.clone(), parameters(&body)));
                message(b'2', b"")
            }
            b'D' => message(b'n', b""),
            b'E' => message(b'C', b"OK\0"),
            b'S' => message(b'Z', b"I"),
            b'X' => return Ok(()),
            other => panic!("unexpected message {}", other as char),
        };
        output.write_all(&answer)?;
    }
}

fn body(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    input.read_exact(&mut body)?;
    Ok(body)
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}

fn string(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The parameters of a Bind message: portal, statement, formats, then the values.
fn parameters(body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut at = string(body).len() + 1;
    at += string(&body[at..]).len() + 1;
    let int16 = |at: usize| usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
    at += 2 + 2 * int16(at);
    let count = int16(at);
    at += 2;
    let mut parameters = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        at += 4;
        parameters.push(usize::try_from(length).ok().map(|length| body[at..at + length].to_vec()));
        at += parameters.last().and_then(Option::as_ref).map_or(0, Vec::len);
    }
    parameters
}
