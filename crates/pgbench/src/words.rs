//! What pgbench says at the end of a run, word for word.

/// The operating system's words for an error, as C's `strerror` gives them.
pub(crate) fn system_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
