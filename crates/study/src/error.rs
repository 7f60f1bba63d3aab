//! Errors of a study's run.

mod choice;
mod search;
mod sides;

use std::path::PathBuf;

use crate::fit::preflight::Preflight;
use crate::full_disk::is_disk_full;

pub use choice::ChoiceError;
pub use search::SearchError;
pub use sides::SidesError;

/// Why a study could not be run. A single trial that breaks is no error of the run: it is
/// recorded and the next one begins.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("no trial fits \"{pattern}\"")]
    NothingFits { pattern: String, points: Vec<String> },
    #[error("the plan has no trial {number}: it has {planned}")]
    NoTrial { number: usize, planned: usize },
    #[error("what is asked for does not fit this machine")]
    DoesNotFit(Box<Preflight>),
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error(transparent)]
    Check(Box<check::Error>),
    #[error(transparent)]
    Site(site::Error),
    #[error("{}", findings(.0))]
    Hosts(Vec<host::HostFinding>),
    /// Hosts of which the inventory does not say where others reach them.
    #[error("the inventory gives no address for {}", .hosts.join(", "))]
    NoAddress { hosts: Vec<String> },
    #[error("host {host}: address \"{address}\": {why}")]
    Address { host: String, address: String, why: String },
    #[error("trial {trial} stopped at a statement that failed\n{why}")]
    Statement {
        trial: String,
        why: String,
        /// The record, which holds every trial that was over by then.
        directory: PathBuf,
    },
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error("{source}")]
    Stopped {
        /// The record, which holds every trial that was over by then.
        directory: PathBuf,
        source: record::Error,
    },
    /// Trials of different servers are not those of one run.
    #[error("going on with the run: it measured {had}, and now there is {has}")]
    OtherServers {
        had: String,
        has: String,
        /// The command of the run.
        again: String,
    },
    #[error("listing what {site} would send: {source}")]
    Listing { site: String, source: Box<DryRunError> },
    #[error("host {host} is lost: {why}")]
    HostLost { host: String, why: String },
    /// A fault that does no harm where it must: the rest of the study would prove nothing.
    #[error("{why}")]
    Control { why: String },
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Sides(#[from] SidesError),
    #[error(transparent)]
    Compare(measure::PairError),
    #[error(transparent)]
    Import(Box<import::Error>),
    #[error("interrupted while {doing}")]
    Interrupted { doing: &'static str },
}

impl From<import::Error> for Error {
    fn from(error: import::Error) -> Error {
        Error::Import(Box::new(error))
    }
}

impl Error {
    /// Says what to do next, where that is known.
    pub fn hint(&self) -> Option<String> {
        // The disk of a record is another one.
        let is_of_servers = !matches!(self, Error::Record(_) | Error::Stopped { .. });
        if is_of_servers && is_disk_full(self) {
            return Some(
                "the disk is full: free some space, or put the servers on another disk (TMPDIR)"
                    .to_owned(),
            );
        }
        self.own_hint()
    }

    fn own_hint(&self) -> Option<String> {
        match self {
            Error::Check(_) => None,
            Error::NothingFits { points, .. } => {
                let shown: Vec<&str> =
                    points.iter().take(POINTS_SHOWN).map(String::as_str).collect();
                let more = if points.len() > shown.len() { ", …" } else { "" };
                Some(format!("there is {}{more}", shown.join(", ")))
            }
            Error::NoTrial { .. } => {
                let plan = "a number counts in a plan: give profile, seed, rounds and pattern too";
                Some(plan.to_owned())
            }
            Error::DoesNotFit(_)
            | Error::Control { .. }
            | Error::HostLost { .. }
            | Error::Interrupted { .. } => None,
            Error::Lab(error) => error.hint(),
            Error::Choice(error) => Some(error.hint()),
            Error::Search(error) => Some(error.hint()),
            Error::Sides(error) => error.hint(),
            Error::Compare(error) => error.hint(),
            Error::Hosts(findings) => {
                let hints = findings.iter().filter_map(|finding| finding.trouble.hint());
                let mut hints: Vec<&str> = hints.collect();
                hints.dedup();
                (!hints.is_empty()).then(|| hints.join("; "))
            }
            Error::NoAddress { .. } => Some(
                "servers listen on the address of their host, and let in the addresses of the \
                 others: address = \"10.0.0.11\""
                    .to_owned(),
            ),
            Error::Address { .. } => Some("give a name or address that resolves here".to_owned()),
            Error::Site(error) => error.hint(),
            Error::Import(error) => error.hint(),
            Error::Listing { source, .. } => source.hint(),
            Error::Statement { directory, .. } => Some(format!(
                "correct the script; where failures are part of the question, say \
                 expect_failures = true in the workload. The record is {}",
                directory.display()
            )),
            Error::OtherServers { again, .. } => Some(format!(
                "add the servers of the run to --resume (--target, --hosts, --node, --pg-bin): {again}"
            )),
            Error::Record(error) => error.hint(),
            Error::Stopped { directory, .. } => Some(format!(
                "trials that were over are kept; make room and go on with: pgrig run --resume {}, and the options \
                 that say where its servers are, if any were given (--hosts, --target, --node, --pg-bin)",
                directory.display()
            )),
        }
    }
}

impl From<measure::PairError> for Error {
    fn from(error: measure::PairError) -> Error {
        match error {
            measure::PairError::Lab(error) => Error::Lab(error),
            measure::PairError::Interrupted { doing } => Error::Interrupted { doing },
            error => Error::Compare(error),
        }
    }
}

impl From<site::Error> for Error {
    fn from(error: site::Error) -> Error {
        match error {
            site::Error::Lab(error) => Error::Lab(error),
            site::Error::Interrupted { doing } => Error::Interrupted { doing },
            error => Error::Site(error),
        }
    }
}

/// Why what a run would send could not be listed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DryRunError {
    #[error(transparent)]
    Data(#[from] site::DataError),
    #[error(transparent)]
    Script(#[from] site::sql::ScriptError),
    #[error(transparent)]
    Warm(#[from] site::warm::WarmError),
}

impl DryRunError {
    fn hint(&self) -> Option<String> {
        match self {
            DryRunError::Data(error) => error.hint(),
            DryRunError::Script(error) => error.hint().map(str::to_owned),
            DryRunError::Warm(_) => None,
        }
    }
}

fn findings(findings: &[host::HostFinding]) -> String {
    let told = |finding: &host::HostFinding| format!("{}: {}", finding.who(), finding.trouble);
    findings.iter().map(told).collect::<Vec<_>>().join("\n")
}

/// More names than these are a list and not a hint.
const POINTS_SHOWN: usize = 8;
