//! Errors of making, changing and reaching the servers of a topology.

use lab::ProcessExit;

use crate::data::DataError;

/// The reason why the servers of a topology could not be made, changed or reached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error("reading the target's address: {0}")]
    Target(#[from] wire::conninfo::ConninfoError),
    #[error("connecting to the target: {0}")]
    TargetTls(#[source] server::TlsError),
    #[error("the study has no node \"{name}\"")]
    NoSuchNode { name: String, known: Vec<String> },
    #[error("the inventory places no host for {}", .nodes.join(", "))]
    NoPlace { nodes: Vec<String> },
    #[error("nodes {first} and {second} are given the same database")]
    HostTwice { first: String, second: String },
    #[error("building the data of {site}: {source}")]
    Data { site: String, source: Box<DataError> },
    #[error("the guard {name} {exit}:\n{log}")]
    GuardEnded { name: String, exit: ProcessExit, log: String },
    #[error("the guard {name} is not in charge within {seconds} s:\n{log}")]
    GuardNotInCharge { name: String, seconds: u64, log: String },
    #[error(transparent)]
    Guard(#[from] guard::Error),
    #[error(transparent)]
    Cluster(#[from] shard::Error),
    #[error("the proxy is not ours")]
    ProxyNotOurs,
    #[error("subscribing {subscriber} to {publisher}: {why}")]
    Subscribing { subscriber: String, publisher: String, why: String },
    #[error("node {node} has bin = \"{bin}\", and its servers are on a host of the inventory")]
    BinOnHost { node: String, bin: String },
    #[error("{0} has no archive: give it archive = true")]
    NotArchived(String),
    #[error("a server tells no place in its WAL, but {said}")]
    NoPlaceInWal { said: String },
    #[error("there is no server {0}")]
    NoServer(String),
    #[error("{node} {why}\n{log}")]
    NotReady { node: String, why: String, log: String },
    #[error("no server takes writes now: {said}")]
    NoPrimary { said: String },
    #[error(
        "{node} died during the load, although the timeline did not stop it: the trial counts for no \
         claim; see its log"
    )]
    Died { node: String },
    #[error("interrupted while {doing}")]
    Interrupted { doing: &'static str },
}

impl Error {
    /// An error of building the data of this site; an interruption stays one.
    pub(crate) fn data(site: String) -> impl FnOnce(DataError) -> Error {
        |source| match source {
            DataError::Lab(error) => Error::Lab(error),
            DataError::Interrupted => Error::Interrupted { doing: "building the data" },
            source => Error::Data { site, source: Box::new(source) },
        }
    }

    /// Says what to do next, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Lab(error) => error.hint(),
            Error::NotArchived(_) => {
                Some("a server is restored from the archive of its WAL".to_owned())
            }
            Error::NoSuchNode { known, .. } => Some(format!("there is {}", known.join(", "))),
            Error::NoPlace { nodes } => {
                let node = nodes.first()?;
                Some(format!("add a line to [place]: {node} = \"HOST\""))
            }
            Error::HostTwice { .. } => Some("a database holds one shard".to_owned()),
            Error::Target(error) => error.hint().map(str::to_owned),
            Error::TargetTls(error) => Some(error.hint().to_owned()),
            Error::Data { source, .. } => source.hint(),
            Error::NotReady { .. } => Some(
                "mend what its last words name in the study's folder, or give it more time: \
                 ready = { …, within = \"5min\" }"
                    .to_owned(),
            ),
            Error::Cluster(error) => error.hint(),
            Error::Guard(error) => error.hint(),
            Error::BinOnHost { .. } => {
                Some("name the programs of a host in the inventory, or leave bin out".to_owned())
            }
            Error::GuardEnded { .. }
            | Error::Subscribing { .. }
            | Error::GuardNotInCharge { .. }
            | Error::ProxyNotOurs
            | Error::Died { .. }
            | Error::NoServer(_)
            | Error::NoPrimary { .. }
            | Error::NoPlaceInWal { .. }
            | Error::Interrupted { .. } => None,
        }
    }
}
