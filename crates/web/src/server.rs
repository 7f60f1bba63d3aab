//! Listens, and answers requests side by side on one thread.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::connections::{IsServed, OpenConnections};
use crate::names::HostNames;
use crate::page::{PageRequest, PageSource, WebResponse};

/// A server of pages; it goes with this value, after the pages that it is sending.
#[derive(Debug)]
pub struct PageServer {
    address: SocketAddr,
    /// The server ends when this goes.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

/// What a server answers with.
struct Site {
    source: Arc<dyn PageSource>,
    names: HostNames,
}

/// Time from the beginning of a connection to the end of its request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time of a whole connection: a long page over a slow tunnel takes some of it.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// Bytes of a request's head. What does not fit gets status 431.
const HEAD_MAX: usize = 16 * 1024;
/// Lines of a request's head.
const HEADERS_MAX: usize = 64;
/// Connections that wait to be accepted, the kernel's limit (`somaxconn`). A flood fills a short queue in a moment in which
/// other programs run, and the next client then waits for a second.
const BACKLOG: i32 = 4096;
/// Without descriptors, the next attempt to accept fails at once as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that are accepted in one turn, fewer than may be open: each is looked at once before it may have to go.
const ACCEPTED_AT_ONCE: u64 = 128;
/// Pages that are made beside the server at the same time; others wait.
const LONG_PAGES: usize = 2;
/// Time that pages under way have when the server ends.
const LAST_TIME: Duration = Duration::from_secs(2);

impl PageServer {
    /// Listens at an address; port 0 stands for a free one.
    pub fn open(
        address: SocketAddr,
        names: HostNames,
        source: Arc<dyn PageSource>,
    ) -> io::Result<PageServer> {
        let listener = TcpListener::bind(address)?;
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LONG_PAGES)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let site = Arc::new(Site { source, names });
        let thread = thread::Builder::new().name("pages".to_owned()).spawn(move || {
            let open = Arc::default();
            let accepting = runtime.spawn(accept(listener, site, Arc::clone(&open)));
            // Nothing is ever sent: this ends when the server's value goes.
            let _ = runtime.block_on(stopped);
            accepting.abort();
            runtime.block_on(send_the_rest(&open));
            // A page that is still being made has no reader any more.
            runtime.shutdown_background();
        })?;
        Ok(PageServer { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Accepts connections for ever.
async fn accept(listener: TcpListener, site: Arc<Site>, open: Arc<Mutex<OpenConnections>>) {
    // The listener is a socket of this kind; the runtime takes it or has no poll at all.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut accepted = 0_u64;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let is_served = IsServed::default();
        let connection = serve(stream, Arc::clone(&site), Arc::clone(&is_served));
        let task = tokio::spawn(connection).abort_handle();
        open.lock().unwrap_or_else(PoisonError::into_inner).add(task, is_served);
        accepted += 1;
        // Connections are looked at before they are too many. A turn for each would leave the next ones waiting in
        // the kernel, where a full queue costs a client a second.
        if accepted.is_multiple_of(ACCEPTED_AT_ONCE) {
            tokio::task::yield_now().await;
        }
    }
}

/// Waits for the pages that are being sent.
async fn send_the_rest(open: &Mutex<OpenConnections>) {
    let began = Instant::now();
    let is_sending = || open.lock().unwrap_or_else(PoisonError::into_inner).is_sending();
    while is_sending() && began.elapsed() < LAST_TIME {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Answers one request.
async fn serve(stream: TcpStream, site: Arc<Site>, is_served: IsServed) {
    let service = service_fn(|request: Request<Incoming>| {
        let site = Arc::clone(&site);
        let is_served = &is_served;
        async move {
            let page = site.answer(&request).await;
            is_served.store(page.status == 200, Ordering::Relaxed);
            Ok::<_, Infallible>(response(page))
        }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service);
    // What becomes of a client is the client's business.
    let _ = timeout(CONNECTION_TIME, connection).await;
}

impl Site {
    async fn answer(&self, request: &Request<Incoming>) -> WebResponse {
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
            (Some(Ok(host)), None) => host,
            _ => return WebResponse::refused(400, "a request names one host"),
        };
        if !self.names.has(host) {
            let why = "ask by an address of this machine, or by a name that this server was given";
            return WebResponse::refused(421, why);
        }
        // A proxy is asked for an address with a scheme and a host; this is none.
        if request.uri().authority().is_some() {
            return WebResponse::refused(400, "this is no proxy");
        }
        if request.method() != Method::GET {
            return WebResponse::refused(405, "GET only");
        }
        if !request.body().is_end_stream() {
            return WebResponse::refused(413, "a request has no body");
        }
        let path = request.uri().path();
        if !self.source.takes_long(PageRequest { path }) {
            return self.source.answer(PageRequest { path });
        }
        let source = Arc::clone(&self.source);
        let path = path.to_owned();
        let made = spawn_blocking(move || source.answer(PageRequest { path: &path })).await;
        made.unwrap_or_else(|_| WebResponse::refused(500, "this page could not be made"))
    }
}

fn response(page: WebResponse) -> Response<String> {
    let mut response = Response::new(page.body);
    *response.status_mut() =
        StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [
        ("content-type", page.kind),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("connection", "close"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
