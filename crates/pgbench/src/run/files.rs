//! The files that a run writes beside pgbench's logs: `--hdr`, `--json`, `--html`.
//!
//! They are created before the run, so that a wrong path is known before the time is spent.

use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;

use stats::hdr_log::{LogInterval, header};

use crate::complaint::{Complaint, system_error};
use crate::options::OurOptions;

use super::plan::{Clock, is_open};
use super::results::Results;
use super::{influx, json};

/// The files that were asked for.
pub(super) struct Files {
    hdr: Option<Target>,
    json: Option<Target>,
    html: Option<Target>,
    curve: Option<Target>,
    influx: Option<Target>,
}

struct Target {
    name: String,
    file: File,
}

impl Files {
    pub(super) fn create(ours: &OurOptions) -> Result<Self, Complaint> {
        let mut known = Vec::new();
        let mut create = |option: &'static str, name: Option<&str>| {
            let Some(target) = name.map(Target::create).transpose()? else { return Ok(None) };
            target.is_only_in(&mut known, option)?;
            Ok(Some(target))
        };
        let of_search = ours.find.as_ref().and_then(|find| find.curve.as_deref());
        let of_sweep = ours.capacity.as_ref().and_then(|capacity| capacity.curve.as_deref());
        let curve = of_search.or(of_sweep);
        Ok(Files {
            hdr: create("--hdr", ours.hdr.as_deref())?,
            json: create("--json", ours.json.as_deref())?,
            html: create("--html", ours.html.as_deref())?,
            curve: create("--curve", curve)?,
            influx: create("--influx", ours.influx.as_deref())?,
        })
    }

    pub(super) fn write(
        self,
        results: &Results<'_>,
        server: &str,
        clock: Clock,
        page: Option<&str>,
    ) -> Result<(), Complaint> {
        if let Some(target) = self.hdr {
            target.write(&hdr(results, server, clock))?;
        }
        if let Some(target) = self.json {
            target.write(&terms::escaped(&json::document(results, server, clock)))?;
        }
        if let Some(target) = self.influx {
            let what = results.words().what();
            target.write(&influx::lines(&results.outcome.intervals, clock, what))?;
        }
        if let (Some(target), Some(search)) = (self.curve, results.search) {
            target.write(&search.curve.csv())?;
        }
        if let (Some(target), Some(page)) = (self.html, page) {
            target.write(page)?;
        }
        Ok(())
    }
}

impl Target {
    fn create(name: &str) -> Result<Self, Complaint> {
        match File::create(name) {
            Ok(file) => Ok(Target { name: name.to_owned(), file }),
            Err(error) => Err(Complaint::error(format_args!(
                "could not create file \"{name}\": {}",
                system_error(&error)
            ))),
        }
    }

    /// Two texts in one regular file would write over each other.
    fn is_only_in(
        &self,
        known: &mut Vec<(&'static str, (u64, u64))>,
        option: &'static str,
    ) -> Result<(), Complaint> {
        let Some(status) = self.file.metadata().ok().filter(Metadata::is_file) else {
            // A pipe or a terminal may be written to by several.
            return Ok(());
        };
        let identity = (status.dev(), status.ino());
        if let Some((other, _)) = known.iter().find(|(_, one)| *one == identity) {
            let name = &self.name;
            let text = format!("{other} and {option} name the same file: \"{name}\"");
            return Err(Complaint::error(text).with_our_hint("give each a file of its own"));
        }
        known.push((option, identity));
        Ok(())
    }

    fn write(mut self, text: &str) -> Result<(), Complaint> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|error| {
            let reason = system_error(&error);
            Complaint::error(format_args!("could not write file \"{}\": {reason}", self.name))
                .with_our_hint("the results above are complete; only this file is not")
        })
    }
}

/// One line for each interval from the first transaction on, warm-up included. In open loop there
/// are two series: from the intended start and, tagged `send`, from the send.
fn hdr(results: &Results<'_>, server: &str, clock: Clock) -> String {
    let intervals = &results.outcome.intervals;
    // Without an interval, the log has no line, and nothing needs the start.
    let began = intervals.first().map(|interval| interval.start).unwrap_or_default();
    let start_us = clock.unix_us() + began.0 / 1000;
    let rig = env!("CARGO_PKG_VERSION");
    let version = results.options.major.version();
    let title = format!("pgrig {rig}: pgbench {version} on server {server}");
    let seconds = start_us / 1_000_000;
    let mut text = header(&[&title, "nanoseconds"], start_us as f64 / 1e6, &format!("@{seconds}"));
    for interval in intervals {
        let mut line = |tag: Option<&str>, latency: &stats::LatencyHistogram| {
            let line = LogInterval {
                tag: tag.map(str::to_owned),
                start_s: interval.start.since(began) as f64 / 1e9,
                length_s: interval.length_ns as f64 / 1e9,
                latency: latency.clone(),
            };
            text.push_str(&line.to_line());
        };
        line(None, &interval.latency);
        if is_open(results.options) {
            line(Some("send"), &interval.service);
        }
    }
    text
}
