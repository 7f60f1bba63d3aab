//! A line of a curve, as the page draws it.

use crate::json::Json;

/// A line of a curve: values, lower and upper bounds at so many places.
pub(crate) fn line(label: &str, colour: u64, places: usize, values: [Json; 3]) -> Json {
    let [values, low, high] = values;
    Json::Object(vec![
        ("label", Json::text(label)),
        ("colour", Json::Exact(colour)),
        ("dashed", Json::Flag(false)),
        ("values", values),
        ("low", low),
        ("high", high),
        ("rounds", Json::List((0..places).map(|_| Json::List(Vec::new())).collect())),
        ("published", Json::series((0..places).map(|_| None))),
    ])
}
