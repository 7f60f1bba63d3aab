//! Answers to requests.

use serde_json::json;
use web::WebResponse;

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

const HTML: &str = "text/html; charset=utf-8";

/// Answers a request for `path` to those who know `token`.
pub(crate) fn answer(shown: &Shown, path: &str, token: &str) -> WebResponse {
    let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(token));
    match below {
        Some("" | "/") => WebResponse::found(HTML, shown.shell.clone()),
        Some("/page") => WebResponse::found(HTML, shown.page.clone()),
        Some("/now") => WebResponse::found(HTML, shown.now.clone()),
        Some("/state") => WebResponse::found("application/json", state(shown)),
        Some(_) | None => {
            let why = "there is nothing here; the address that pgrig printed has a token";
            WebResponse::refused(404, why)
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
        let check = |path: &str, status: u16, body: &str| {
            let page = answer(&shown, path, "secret");
            assert_eq!(page.status, status, "{path}");
            assert!(page.body.contains(body), "{}", page.body);
        };
        check("/secret", 200, "shell");
        check("/secret/", 200, "shell");
        check("/secret/page", 200, "page");
        check("/secret/state", 200, "{\"line\":\"10 %\",\"now\":0,\"over\":false,\"page\":3}");
        check("/", 404, "token");
        check("/guess/page", 404, "token");
        check("/secretpage", 404, "token");
    }
}
