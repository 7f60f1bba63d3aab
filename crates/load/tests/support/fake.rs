//! A server that speaks the protocol and does nothing: for thousands of clients on a small
//! machine. A statement that contains "sleep" is not answered until it is cancelled.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

struct Client {
    stream: UnixStream,
    arrived: Vec<u8>,
    started: bool,
}

/// Serves until the process ends.
pub(crate) fn serve(path: &Path) {
    let listener = UnixListener::bind(path).expect("a socket");
    rustix::net::listen(&listener, 4096).expect("a backlog");
    listener.set_nonblocking(true).expect("a socket that does not wait");
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
    epoll::add(&epoll, &listener, EventData::new_u64(0), EventFlags::IN).expect("epoll");
    let mut clients: HashMap<u64, Client> = HashMap::new();
    let mut next = 1;
    let mut events = [const { std::mem::MaybeUninit::uninit() }; 256];
    loop {
        let Ok((events, _)) = epoll::wait(&epoll, &mut events, None) else { continue };
        for event in events {
            let number = event.data.u64();
            if number != 0 {
                converse(number, &mut clients);
                continue;
            }
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).expect("a socket that does not wait");
                epoll::add(&epoll, &stream, EventData::new_u64(next), EventFlags::IN)
                    .expect("epoll");
                clients.insert(next, Client { stream, arrived: Vec::new(), started: false });
                next += 1;
            }
        }
    }
}

fn converse(number: u64, clients: &mut HashMap<u64, Client>) {
    let Some(client) = clients.get_mut(&number) else { return };
    let mut bytes = [0; 16 * 1024];
    let gone = match client.stream.read(&mut bytes) {
        Ok(0) => true,
        Ok(n) => {
            client.arrived.extend_from_slice(&bytes[..n]);
            false
        }
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    };
    let mut cancels = None;
    if gone || !client.answer(number, &mut cancels) {
        clients.remove(&number);
    }
    if let Some(victim) = cancels.and_then(|victim| clients.get_mut(&u64::from(victim))) {
        let error = b"SERROR\0VERROR\0C57014\0Mcanceled\0\0";
        let mut out = Vec::new();
        frame(&mut out, b'E', error);
        frame(&mut out, b'Z', b"I");
        // It may have gone in the meantime.
        let _ = victim.stream.write_all(&out);
    }
}

impl Client {
    /// Answers every whole message; false when the client leaves.
    fn answer(&mut self, number: u64, cancels: &mut Option<u32>) -> bool {
        let mut out = Vec::new();
        let mut stays = true;
        loop {
            let head = if self.started { 5 } else { 4 };
            if self.arrived.len() < head {
                break;
            }
            let length = be(&self.arrived[head - 4..]) as usize + head - 4;
            if self.arrived.len() < length {
                break;
            }
            let message: Vec<u8> = self.arrived.drain(..length).collect();
            if self.started {
                stays &= reply(&mut out, message[0], &message[5..]);
            } else if be(&message[4..]) == 80_877_102 {
                *cancels = Some(be(&message[8..]));
                stays = false;
            } else {
                self.started = true;
                frame(&mut out, b'R', &[0; 4]);
                frame(&mut out, b'K', &[(number as u32).to_be_bytes(), [0; 4]].concat());
                frame(&mut out, b'Z', b"I");
            }
        }
        stays && self.stream.write_all(&out).is_ok()
    }
}

fn reply(out: &mut Vec<u8>, tag: u8, body: &[u8]) -> bool {
    match tag {
        b'Q' if body.windows(5).any(|word| word == b"sleep") => {}
        b'Q' => {
            frame(out, b'C', b"SELECT 1\0");
            frame(out, b'Z', b"I");
        }
        b'P' => frame(out, b'1', b""),
        b'B' => frame(out, b'2', b""),
        b'D' => frame(out, b'n', b""),
        b'E' => frame(out, b'C', b"SELECT 1\0"),
        b'S' => frame(out, b'Z', b"I"),
        _ => return false,
    }
    true
}

fn frame(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

fn be(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
