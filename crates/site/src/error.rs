//! Errors of making, changing and reaching the servers of a topology.

use lab::Exit;

use crate::data::DataError;

/// The reason why the servers of a topology could not be made, changed or reached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// No PostgreSQL, no lab, or a server's own words.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The outside server's address.
    #[error("reading the target's address: {0}")]
    Target(#[from] wire::conninfo::ConninfoError),
    /// The outside server's certificates, or ours.
    #[error("connecting to the target: {0}")]
    TargetTls(#[source] server::TlsError),
    /// A host stands for a node that the study does not have.
    #[error("the study has no node \"{name}\"")]
    NoSuchNode {
        /// The name that was given.
        name: String,
        /// The nodes that there are.
        known: Vec<String>,
    },
    /// An inventory that does not say where nodes run.
    #[error("the inventory places no host for {}", .nodes.join(", "))]
    NoPlace { nodes: Vec<String> },
    /// Two nodes have the same host and database.
    #[error("nodes {first} and {second} are given the same database")]
    HostTwice { first: String, second: String },
    /// The study's data could not be built.
    #[error("building the data of {site}: {source}")]
    Data { site: String, source: Box<DataError> },
    /// A guard has ended by itself.
    #[error("the guard {name} {exit}:\n{log}")]
    GuardEnded {
        /// Its name in the lab.
        name: String,
        exit: Exit,
        /// The end of its log.
        log: String,
    },
    /// A guard does not take charge.
    #[error("the guard {name} is not in charge within {seconds} s:\n{log}")]
    GuardNotInCharge {
        /// Its name in the lab.
        name: String,
        /// The time that it was given.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// A guard's output that cannot be read.
    #[error(transparent)]
    Guard(#[from] guard::Error),
    /// A PL/Proxy cluster.
    #[error(transparent)]
    Cluster(#[from] shard::Error),
    /// A proxy of the user's.
    #[error("the proxy is not ours")]
    ProxyNotOurs,
    /// The topology has no such server.
    #[error("there is no server {0}")]
    NoServer(String),
    /// A program of a machine that does not get ready.
    #[error("{node} is not ready within {within}: {said}\n{log}")]
    NotReady {
        /// The program and its machine.
        node: String,
        /// The time that it was given.
        within: String,
        said: String,
        /// The end of the machine's logs.
        log: String,
    },
    /// No server takes writes.
    #[error("no server takes writes now: {said}")]
    NoPrimary {
        /// The answer of each of them.
        said: String,
    },
    /// A server ended though no action of the timeline ended it.
    #[error(
        "{node} died during the load, although the timeline did not stop it: the trial counts for no \
         claim; see its log"
    )]
    Died { node: String },
    /// The run was interrupted.
    #[error("interrupted while {doing}")]
    Interrupted {
        /// The step that was interrupted.
        doing: &'static str,
    },
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
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Lab(error) => error.hint(),
            Error::NoSuchNode { known, .. } => Some(format!("there is {}", known.join(", "))),
            Error::NoPlace { nodes } => {
                let node = nodes.first().map(String::as_str).unwrap_or_default();
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
            Error::GuardEnded { .. }
            | Error::GuardNotInCharge { .. }
            | Error::ProxyNotOurs
            | Error::Died { .. }
            | Error::NoServer(_)
            | Error::NoPrimary { .. }
            | Error::Interrupted { .. } => None,
        }
    }
}
