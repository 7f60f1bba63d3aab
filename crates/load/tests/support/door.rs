//! A door before a server's socket: narrow, slow to open, or silent.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// A Unix socket whose connections lead to another one. It lives as long as the process.
#[derive(Clone)]
pub(crate) struct Door {
    inner: PathBuf,
    is_silent: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl Door {
    /// Listens in `directory` as if on port 1, with room for `backlog` that wait, and lets one in
    /// every 2 ms.
    pub(crate) fn new(directory: &Path, inner: &str, backlog: i32) -> Door {
        let door = Door { inner: inner.into(), is_silent: Arc::default(), open: Arc::default() };
        let listener = UnixListener::bind(directory.join(".s.PGSQL.1")).unwrap();
        rustix::net::listen(&listener, backlog).unwrap();
        let keeper = door.clone();
        thread::spawn(move || {
            for outer in listener.incoming() {
                thread::sleep(Duration::from_millis(2));
                let Ok(outer) = outer else { break };
                keeper.let_in(outer);
            }
        });
        door
    }

    /// Cuts everybody off, and answers nobody who comes.
    pub(crate) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
        self.cut();
    }

    /// Lets clients in again.
    pub(crate) fn open(&self) {
        self.is_silent.store(false, Ordering::Relaxed);
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may have been closed from the other side.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn let_in(&self, outer: UnixStream) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(outer.try_clone().unwrap());
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        let inner = UnixStream::connect(&self.inner).unwrap();
        pass(outer.try_clone().unwrap(), inner.try_clone().unwrap());
        pass(inner, outer);
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        // The other direction ends with this one.
        let _ = to.shutdown(Shutdown::Both);
    });
}
