//! Listens on the loopback.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use web::{HostNames, PageRequest, PageServer, PageSource, WebResponse};

use crate::serve::answer::{self, Shown};

/// Reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("listening on 127.0.0.1: {0}")]
    Listen(std::io::Error),
    #[error("making a token: {0}")]
    Token(#[from] rustix::io::Errno),
}

/// A page while something runs; it goes with this value.
#[derive(Debug)]
pub(crate) struct Server {
    http: PageServer,
    shared: Arc<Shared>,
}

/// What those see who know the token.
#[derive(Debug)]
struct Shared {
    token: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shown: Shown,
    /// Time at which a browser last asked for news.
    asked: Option<Instant>,
    /// True if a browser has the last version of the page.
    has_last: bool,
}

impl State {
    fn is_watched(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < LOOKING)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageSource for Shared {
    fn answer(&self, request: PageRequest<'_>) -> WebResponse {
        let mut state = self.state();
        let page = answer::answer(&state.shown, request.path, &self.token);
        if page.status == 200 {
            state.asked = Some(Instant::now());
            state.has_last |= state.shown.is_over && request.path.ends_with("/page");
        }
        page
    }
}

/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// A browser that asked within this time is looking.
const LOOKING: Duration = Duration::from_secs(5);

/// Time that a browser that is looking has to fetch the last page.
const LAST_WAIT: Duration = Duration::from_secs(5);

impl Server {
    /// Listens on a free port of 127.0.0.1. `shell` is the page that a browser opens; it asks for
    /// `state`, `page` and `now` below its own address.
    pub(crate) fn open(shell: String) -> Result<Server, Error> {
        let state = State { shown: Shown { shell, ..Shown::default() }, ..State::default() };
        let shared = Arc::new(Shared { token: token()?, state: Mutex::new(state) });
        let source = Arc::clone(&shared);
        let http = PageServer::open(([127, 0, 0, 1], 0).into(), HostNames::default(), source)
            .map_err(Error::Listen)?;
        Ok(Server { http, shared })
    }

    /// Address of the page for a browser.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/{}/", self.http.address(), self.shared.token)
    }

    /// True if a browser looks: pages need not be made for none.
    pub(crate) fn is_watched(&self) -> bool {
        self.shared.state().is_watched()
    }

    pub(crate) fn show(&self, page: String) {
        self.change(|shown| {
            shown.page = page;
            shown.page_version += 1;
        });
    }

    /// Replaces what is under way; an empty page takes it away.
    pub(crate) fn show_now(&self, now: String) {
        self.change(|shown| {
            shown.now = now;
            shown.now_version += 1;
        });
    }

    pub(crate) fn say(&self, line: &str) {
        self.change(|shown| line.clone_into(&mut shown.line));
    }

    /// Says that nothing more will come, and gives a browser that is looking some seconds to fetch
    /// the last page.
    pub(crate) fn end(self, line: &str) {
        self.change(|shown| {
            shown.is_over = true;
            shown.now.clear();
            line.clone_into(&mut shown.line);
        });
        let began = Instant::now();
        while began.elapsed() < LAST_WAIT {
            let state = self.shared.state();
            if state.has_last || !state.is_watched() {
                return;
            }
            drop(state);
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.shared.state().shown);
    }
}

/// A text that nobody can guess.
pub(crate) fn token() -> Result<String, Error> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn get(server: &Server, path: &str) -> String {
        let mut stream = TcpStream::connect(server.http.address()).expect("it listens");
        let request = format!(
            "GET /{}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            server.shared.token,
            server.http.address()
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn what_is_shown_is_replaced_and_the_last_page_is_waited_for() {
        let server = Server::open("shell".to_owned()).expect("a free port");
        assert!(get(&server, "/").ends_with("shell"));
        server.show("first".to_owned());
        server.show("second".to_owned());
        server.say("half");
        let state = get(&server, "/state");
        assert!(state.contains("\"page\":2") && state.contains("\"line\":\"half\""), "{state}");
        assert!(get(&server, "/page").ends_with("second"));
        let (shared, url) = (Arc::clone(&server.shared), server.url());
        assert!(url.starts_with("http://127.0.0.1:") && url.len() > 50, "{url}");
        let ended = thread::spawn(move || server.end("done"));
        thread::sleep(Duration::from_millis(100));
        assert!(!ended.is_finished(), "a browser has looked, and has not the last page yet");
        shared.state().has_last = true;
        ended.join().expect("it ends");
    }
}
