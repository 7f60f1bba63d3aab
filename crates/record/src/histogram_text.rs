//! A histogram in a record: HDR's own V2 encoding, deflated and in base64, which other tools read.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use stats::Latency;

/// For `#[serde(with = …)]`.
pub fn serialize<S: Serializer>(latency: &Latency, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&latency.to_base64())
}

/// For `#[serde(with = …)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Latency, D::Error> {
    let text = String::deserialize(from)?;
    Latency::from_base64(&text).map_err(D::Error::custom)
}
