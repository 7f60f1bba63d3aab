//! HDR histogram logs, as text: what `--hdr FILE` writes and other HDR tools read.
//!
//! A header, then one line per interval: tag, start, length, maximum, histogram. Starts are seconds
//! since the log's start time, maxima milliseconds (readers take the maximum from the histogram),
//! histograms V2 with deflate in base64. Format: `HistogramLogWriter.java` of HdrHistogram, 1.3.

use std::fmt::Write;

use thiserror::Error;

use crate::hdr_payload::DecodeError;
use crate::latency::LatencyHistogram;

/// The histogram of one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct LogInterval {
    /// Name of the series, if the log holds several. Commas and white space, which the format
    /// cannot hold, are written as `_`.
    pub tag: Option<String>,
    /// Time at which the interval began, in seconds since the start of the log.
    pub start_s: f64,
    /// Length of the interval in seconds.
    pub length_s: f64,
    /// Durations that were recorded in it.
    pub latency: LatencyHistogram,
}

/// A whole log.
#[derive(Clone, Debug, PartialEq)]
pub struct HdrLog {
    /// The time at which the log began, in seconds since 1970, if the log has it.
    pub start_unix_s: Option<f64>,
    /// The intervals in the order of the file.
    pub intervals: Vec<LogInterval>,
}

/// Why a text is no HDR log.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LogError {
    #[error("read an HDR log: line {line}: expected [Tag=…,]start,length,maximum,histogram")]
    Fields { line: usize },
    #[error("read an HDR log: line {line}: {source}")]
    Histogram { line: usize, source: DecodeError },
}

const LEGEND: &str =
    r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#;
const START_TIME: &str = "#[StartTime: ";

/// The lines before the first interval: `comments` (what wrote it, about what), the format's
/// version, and when it began: `start_unix_s` in seconds since 1970, `start_text` for people.
pub fn header(comments: &[&str], start_unix_s: f64, start_text: &str) -> String {
    let mut text = String::new();
    for line in comments.iter().flat_map(|comment| comment.lines()) {
        let _ = writeln!(text, "#[{line}]");
    }
    // The first line of an empty text is empty.
    let start_text = start_text.lines().next().unwrap_or_default();
    let _ = writeln!(text, "#[Histogram log format version 1.3]");
    let _ = writeln!(text, "{START_TIME}{start_unix_s:.3} (seconds since epoch), {start_text}]");
    let _ = writeln!(text, "{LEGEND}");
    text
}

impl LogInterval {
    /// The interval's line, with its newline.
    pub fn to_line(&self) -> String {
        let mut line = String::new();
        if let Some(tag) = &self.tag {
            let forbidden = |c: char| c == ',' || c.is_whitespace() || c.is_control();
            let _ = write!(line, "Tag={},", tag.replace(forbidden, "_"));
        }
        // HdrHistogram writes 0 for an interval without a value.
        let max_ms = self.latency.max_ns().unwrap_or(0) as f64 / 1e6;
        let payload = self.latency.to_base64();
        let (start_s, length_s) = (self.start_s, self.length_s);
        let _ = writeln!(line, "{start_s:.3},{length_s:.3},{max_ms:.3},{payload}");
        line
    }
}

/// Reads a log back. Comments and the legend are skipped. Where a log gives starts in absolute
/// time (later than the start time less a year, the rule of HDR's own reader), they are made
/// relative.
///
/// # Errors
/// The first line that is neither comment, legend nor interval, or whose histogram is damaged.
pub fn read(text: &str) -> Result<HdrLog, LogError> {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    let mut log = HdrLog { start_unix_s: None, intervals: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(START_TIME) {
            let number = rest.split([' ', ']']).next();
            log.start_unix_s = number.and_then(|number| number.parse().ok());
        }
        if line.is_empty() || line.starts_with(['#', '"']) {
            continue;
        }
        let mut interval = read_interval(line, index + 1)?;
        if let Some(start) = log.start_unix_s.filter(|start| interval.start_s > start - YEAR_S) {
            interval.start_s -= start;
        }
        log.intervals.push(interval);
    }
    Ok(log)
}

fn read_interval(text: &str, line: usize) -> Result<LogInterval, LogError> {
    let (tag, fields) = match text.strip_prefix("Tag=").map(|rest| rest.split_once(',')) {
        Some(Some((tag, fields))) => (Some(tag.to_string()), fields),
        Some(None) => return Err(LogError::Fields { line }),
        None => (None, text),
    };
    let mut fields = fields.splitn(4, ',');
    let mut number = || fields.next().and_then(|field| field.trim().parse::<f64>().ok());
    let (Some(start_s), Some(length_s), Some(_max)) = (number(), number(), number()) else {
        return Err(LogError::Fields { line });
    };
    let payload = fields.next().ok_or(LogError::Fields { line })?;
    let latency = LatencyHistogram::from_base64(payload)
        .map_err(|source| LogError::Histogram { line, source })?;
    Ok(LogInterval { tag, start_s, length_s, latency })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(tag: Option<&str>, start_s: f64, values: &[u64]) -> LogInterval {
        let mut latency = LatencyHistogram::new();
        values.iter().for_each(|&value| latency.record_ns(value));
        LogInterval { tag: tag.map(str::to_string), start_s, length_s: 1.0, latency }
    }

    #[test]
    fn a_log_is_text_that_hdr_tools_read() {
        let mut text = header(&["pgrig 0.1.0"], 1_763_000_000.25, "2025-11-13T02:13:20Z");
        text += &interval(Some("read only, 1"), 0.0, &[1_000_000, 2_500_000]).to_line();
        text += &interval(None, 1.0, &[]).to_line();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "#[pgrig 0.1.0]",
                "#[Histogram log format version 1.3]",
                "#[StartTime: 1763000000.250 (seconds since epoch), 2025-11-13T02:13:20Z]",
                LEGEND,
            ]
        );
        assert!(lines[4].starts_with("Tag=read_only__1,0.000,1.000,2.500,HISTFAAAA"), "{text}");
        assert!(lines[5].starts_with("1.000,1.000,0.000,HISTFAAAA"), "{text}");

        let log = read(&text).expect("own log");
        assert_eq!(log.start_unix_s, Some(1_763_000_000.25));
        assert_eq!(log.intervals[0].tag.as_deref(), Some("read_only__1"));
        assert_eq!(log.intervals[0].latency.count(), 2);
        assert!(log.intervals[1].latency.is_empty());
    }

    /// The histogram was written by HdrHistogram for Java (a line of jHiccup's sample log, which
    /// the projects use to test each other), so it checks more than agreement with ourselves.
    #[test]
    fn an_interval_written_by_java_is_read() {
        let log = read(
            "#[Histogram log format version 1.2]\n\
             #[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\"\n\
             Tag=A,1441812279.601,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsP\
             EBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=\n",
        )
        .expect("a published log");
        let interval = &log.intervals[0];
        assert!((interval.start_s - 0.127).abs() < 1e-6);
        let max_ns = interval.latency.max_ns().expect("not empty");
        assert_eq!(max_ns / 1_000, 2_768, "the line's maximum is 2.769 ms, rounded up");
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, expected: &str| {
            let error = read(text).expect_err(text).to_string();
            assert_eq!(error, format!("read an HDR log: {expected}"));
        };
        let fields = "expected [Tag=…,]start,length,maximum,histogram";
        check("#x\n\nhello", &format!("line 3: {fields}"));
        check("Tag=a", &format!("line 1: {fields}"));
        check("1,2,3", &format!("line 1: {fields}"));
        check(
            "1,2,3,!",
            "line 1: decode an HDR histogram: not base64 (Invalid symbol 33, offset 0.)",
        );
    }
}
