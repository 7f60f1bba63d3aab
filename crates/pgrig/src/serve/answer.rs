//! Answers to requests.

use serde_json::json;

/// Content that is shown at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// The page that a browser opens.
    pub(crate) shell: String,
    /// The work as far as it is.
    pub(crate) page: String,
    /// The work under way; empty for nothing.
    pub(crate) now: String,
    pub(crate) line: String,
    /// Counts the versions of `page`.
    pub(crate) page_version: u64,
    /// Counts the versions of `now`.
    pub(crate) now_version: u64,
    /// True if nothing more will come.
    pub(crate) is_over: bool,
}

/// Status, content type and body.
pub(crate) type Response = (u16, &'static str, String);

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers a request for `url` that named `host`, to a server at `address` that knows `token`.
/// A name that somebody has made lead here gets nothing; `localhost` with another port is the end of
/// a tunnel.
pub(crate) fn answer(
    shown: &Shown,
    (method, url, host): (&str, &str, Option<&str>),
    (address, token): (&str, &str),
) -> Response {
    let is_here = host.is_some_and(|host| host == address || host.starts_with("localhost:"));
    if !is_here {
        return (421, TEXT, format!("this is {address}\n"));
    }
    if method != "GET" {
        return (405, TEXT, "GET only\n".to_owned());
    }
    let path = url.split('?').next().unwrap_or_default();
    let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(token));
    match below {
        Some("" | "/") => (200, HTML, shown.shell.clone()),
        Some("/page") => (200, HTML, shown.page.clone()),
        Some("/now") => (200, HTML, shown.now.clone()),
        Some("/state") => (200, "application/json", state(shown)),
        Some(_) | None => {
            let why = "there is nothing here; the address that pgrig printed has a token\n";
            (404, TEXT, why.to_owned())
        }
    }
}

fn state(shown: &Shown) -> String {
    json!({
        "line": shown.line,
        "page": shown.page_version,
        "now": if shown.now.is_empty() { 0 } else { shown.now_version },
        "over": shown.is_over,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_know_the_token_see_anything() {
        let shown = Shown {
            shell: "shell".to_owned(),
            page: "page".to_owned(),
            line: "10 %".to_owned(),
            page_version: 3,
            ..Shown::default()
        };
        let here = ("127.0.0.1:4000", "secret");
        let check = |method: &str, url: &str, host: Option<&str>, status: u16, body: &str| {
            let (seen, _, text) = answer(&shown, (method, url, host), here);
            assert_eq!(seen, status, "{method} {url} {host:?}");
            assert!(text.contains(body), "{text}");
        };
        let host = Some("127.0.0.1:4000");
        check("GET", "/secret", host, 200, "shell");
        check("GET", "/secret/", Some("localhost:8000"), 200, "shell");
        check("GET", "/secret/page?3", host, 200, "page");
        check(
            "GET",
            "/secret/state",
            host,
            200,
            "{\"line\":\"10 %\",\"now\":0,\"over\":false,\"page\":3}",
        );
        check("GET", "/", host, 404, "token");
        check("GET", "/guess/page", host, 404, "token");
        check("GET", "/secretpage", host, 404, "token");
        check("POST", "/secret/", host, 405, "GET");
        check("GET", "/secret/", Some("evil.example:4000"), 421, "");
        check("GET", "/secret/", None, 421, "");
    }
}
