//! The password prompt, at a terminal that `script` makes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A server that asks for a password in clear, tells it, and lets nobody in.
fn doorkeeper() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, passwords) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that leaves to ask its user sends no password.
            if let Some(password) = hear_password(stream.unwrap()) {
                let _ = sender.send(password);
            }
        }
    });
    (port, passwords)
}

fn hear_password(mut stream: TcpStream) -> Option<String> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body).ok()?;
    stream.write_all(b"R\0\0\0\x08\0\0\0\x03").ok()?;
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
    stream.read_exact(&mut body).ok()?;
    let no = b"SFATAL\0VFATAL\0C28P01\0Mno\0\0";
    stream.write_all(b"E").ok()?;
    stream.write_all(&(no.len() as u32 + 4).to_be_bytes()).ok()?;
    stream.write_all(no).ok()?;
    Some(String::from_utf8_lossy(&body[..body.len() - 1]).into_owned())
}

/// A load at a terminal of its own, which ends with this.
struct AtTerminal(Child);

impl AtTerminal {
    fn begins(port: u16) -> AtTerminal {
        let load = format!(
            "'{}' bench -n -t 1 'host=127.0.0.1 port={port} user=u dbname=d sslmode=disable \
             gssencmode=disable'",
            env!("CARGO_BIN_EXE_pgrig")
        );
        let mut command = Command::new("script");
        command.args(["-qefc", &load, "/dev/null"]).env_remove("PGPASSWORD");
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        AtTerminal(pipes.spawn().expect("script, of the package bsdutils"))
    }

    fn types(&mut self, text: &str) {
        self.0.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// What the terminal shows until `end` stands there, or everything.
    fn shows(&mut self, end: &str) -> String {
        let mut shown = String::new();
        let mut piece = [0; 4096];
        while !shown.ends_with(end) || end.is_empty() {
            match self.0.stdout.as_mut().unwrap().read(&mut piece).unwrap() {
                0 => break,
                length => shown.push_str(&String::from_utf8_lossy(&piece[..length])),
            }
        }
        shown
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_password_that_is_typed_at_once_is_not_shown() {
    let (port, passwords) = doorkeeper();
    for run in 0..30 {
        let mut terminal = AtTerminal::begins(port);
        assert!(terminal.shows("Password: ").ends_with("Password: "), "run {run}");
        terminal.types("f9Gq-secret\n");
        let shown = terminal.shows("");
        assert!(!shown.contains("secret"), "run {run}: {shown}");
        let heard = passwords.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(heard, "f9Gq-secret", "run {run}");
    }
}

/// As with libpq, what was typed before the question is no answer to it.
#[test]
fn what_was_typed_before_the_prompt_is_no_password() {
    let (port, passwords) = doorkeeper();
    let mut terminal = AtTerminal::begins(port);
    terminal.types("psql\n");
    terminal.shows("Password: ");
    terminal.types("f9Gq-secret\n");
    assert_eq!(passwords.recv_timeout(Duration::from_secs(10)).unwrap(), "f9Gq-secret");
}

#[test]
fn an_interruption_ends_the_question() {
    let (port, _passwords) = doorkeeper();
    let mut terminal = AtTerminal::begins(port);
    terminal.shows("Password: ");
    let began = Instant::now();
    terminal.types("\x03");
    terminal.shows("");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_ne!(terminal.0.wait().unwrap().code(), Some(0));
}
