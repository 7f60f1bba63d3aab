//! A histogram in a record: HDR's own V2 encoding, deflated and in base64, which other tools read.
//! Behind a semicolon follow the exact sums, which HDR does not keep: count, sum (ns), sum of
//! squares (ns²), shortest and longest (ns). Without them the mean is an estimate, within 0.05 %.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use stats::{DurationSums, LatencyHistogram};

use crate::allowance;

/// For `#[serde(with = …)]`.
pub fn serialize<S: Serializer>(latency: &LatencyHistogram, to: S) -> Result<S::Ok, S::Error> {
    let DurationSums { count, sum_ns, sum_squares_ns2, min_ns, max_ns } = latency.moments();
    let histogram = latency.to_base64();
    match count {
        0 => to.serialize_str(&histogram),
        _ => to.collect_str(&format_args!(
            "{histogram};{count},{sum_ns},{sum_squares_ns2},{min_ns},{max_ns}"
        )),
    }
}

/// For `#[serde(with = …)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LatencyHistogram, D::Error> {
    let text = String::deserialize(from)?;
    let (histogram, sums) = text.split_once(';').unwrap_or((&text, ""));
    let latency = LatencyHistogram::from_base64(histogram).map_err(D::Error::custom)?;
    if !allowance::unpacked(latency.unpacked_bytes()) {
        return Err(D::Error::custom("histograms unpack to more than is read"));
    }
    if sums.is_empty() {
        return Ok(latency);
    }
    let moments =
        moments(sums).ok_or_else(|| D::Error::custom("sums of a histogram are damaged"))?;
    Ok(latency.with_moments(moments))
}

fn moments(text: &str) -> Option<DurationSums> {
    let mut numbers = text.split(',').map(|number| number.parse::<u128>().ok());
    let mut next = || numbers.next().flatten();
    Some(DurationSums {
        count: next()?.try_into().ok()?,
        sum_ns: next()?,
        sum_squares_ns2: next()?,
        min_ns: next()?.try_into().ok()?,
        max_ns: next()?.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] LatencyHistogram);

    #[test]
    fn sums_survive_exactly_and_merge_exactly() {
        let mut whole = LatencyHistogram::new();
        let mut merged = LatencyHistogram::new();
        for part in 0..3 {
            let mut latency = LatencyHistogram::new();
            for n in 0..1_000_u64 {
                let value_ns = 1_234_567 + n * 7_919 + part;
                latency.record_ns(value_ns);
                whole.record_ns(value_ns);
            }
            let text = serde_json::to_string(&Holder(latency)).unwrap();
            merged.merge(&serde_json::from_str::<Holder>(&text).unwrap().0);
        }
        assert_eq!(merged.moments(), whole.moments());
        assert_eq!(merged.quantile_ns(0.99), whole.quantile_ns(0.99));
    }

    #[test]
    fn text_of_other_tools_is_read_and_damage_is_refused() {
        let mut latency = LatencyHistogram::new();
        latency.record_ns(1_000_000);
        let plain = format!("\"{}\"", latency.to_base64());
        let read = serde_json::from_str::<Holder>(&plain).unwrap().0;
        assert!((read.mean_ns().unwrap() / 1e6 - 1.0).abs() < 0.001);
        let damaged = format!("\"{};1,2\"", latency.to_base64());
        assert!(serde_json::from_str::<Holder>(&damaged).is_err());
        let empty = serde_json::to_string(&Holder(LatencyHistogram::new())).unwrap();
        assert!(serde_json::from_str::<Holder>(&empty).unwrap().0.is_empty());
    }
}
