//! A request as a source of pages sees it, and its answer.

/// A request whose method and host are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest<'r> {
    /// The path, from its first slash up to a question mark.
    pub path: &'r str,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebResponse {
    /// Status of HTTP, such as 200.
    pub status: u16,
    /// Content type.
    pub kind: &'static str,
    /// What is shown.
    pub body: String,
}

impl WebResponse {
    /// The page that was asked for.
    pub fn found(kind: &'static str, body: String) -> WebResponse {
        WebResponse { status: 200, kind, body }
    }

    /// A line that says why there is none.
    pub fn refused(status: u16, why: &str) -> WebResponse {
        WebResponse { status, kind: "text/plain; charset=utf-8", body: format!("{why}\n") }
    }
}

/// The pages that a server shows.
///
/// The thread of the server asks, so an answer must not wait for anything, unless it says that it takes long.
pub trait PageSource: Send + Sync + 'static {
    /// The answer to a request.
    fn answer(&self, request: PageRequest<'_>) -> WebResponse;

    /// True if the answer takes long: a thread beside the server then asks for it.
    fn takes_long(&self, _request: PageRequest<'_>) -> bool {
        false
    }
}
