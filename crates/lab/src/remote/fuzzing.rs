//! The lines of a lab, for fuzz targets.

use fault::link::Counters;
use serde::de::DeserializeOwned;

use super::line::json;
use super::verb::{Answer, Ask, Listing, MadeNode, MadeProgram, Opened, Ran};
use crate::{Format, LinkCost};

/// Reads a line as a question and as the answer to every question.
pub fn line(text: &str) {
    if let Ok(ask) = serde_json::from_str::<Ask>(text) {
        assert!(!json(&ask).is_empty());
    }
    let Ok(answer) = serde_json::from_str::<Answer>(text) else { return };
    assert!(!json(&answer).is_empty());
    match answer.result {
        Err(failure) => {
            let error = failure.at("h");
            assert!(!error.to_string().is_empty());
            let _ = error.hint();
        }
        Ok(value) => {
            read::<Opened>(&value);
            read::<MadeNode>(&value);
            read::<MadeProgram>(&value);
            read::<Listing>(&value);
            read::<Ran>(&value);
            read::<Counters>(&value);
            read::<LinkCost>(&value);
            read::<Format>(&value);
            read::<os::init::Exit>(&value);
        }
    }
}

fn read<T: DeserializeOwned>(value: &serde_json::Value) {
    let _ = serde_json::from_value::<T>(value.clone());
}
