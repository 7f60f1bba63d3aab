//! The lines of a lab, for fuzz targets.

use super::line::json;
use super::message::{Ask, Opening, Reply};

/// Reads a line as an opening, as a question and as a reply.
pub fn line(text: &str) {
    if let Ok(opening) = serde_json::from_str::<Opening>(text) {
        assert!(!json(&opening).is_empty());
    }
    if let Ok(ask) = serde_json::from_str::<Ask>(text) {
        assert!(!json(&ask).is_empty());
    }
    // A line that is no reply is refused by its reader.
    let Ok(reply) = serde_json::from_str::<Reply>(text) else { return };
    assert!(!json(&reply).is_empty());
    if let Err(failure) = reply.result {
        let error = failure.at("h");
        assert!(!error.to_string().is_empty());
        let _ = error.hint();
    }
}
