//! The answers of a lab.

use std::path::PathBuf;
use std::time::Duration;

use fault::disk::{PowerCutReport, RequestLog};
use fault::link::{LinkCounters, TrafficShape};
use os::init::ProcessExit;
use os::user::SystemUser;
use serde::{Deserialize, Serialize};

use crate::archive::{ArchivedFile, BackupVerdict};
use crate::checksums::Checksums;
use crate::endpoint::Endpoint;
use crate::find::Installation;
use crate::flush::Flush;
use crate::format::Format;
use crate::lab_config::Isolation;
use crate::link_config::{LinkCost, LinkTap};
use crate::resources::Resources;
use crate::upgrade::UpgradeReport;

/// Each variant is the only one with its type, so that a question names a type and not a variant.
macro_rules! answers {
    ($($name:ident($type:ty),)+) => {
        /// An answer to a [`crate::verb::Verb`].
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum Answer {
            $($name($type),)+
        }

        $(
            impl From<$type> for Answer {
                fn from(answer: $type) -> Answer {
                    Answer::$name(answer)
                }
            }

            impl TryFrom<Answer> for $type {
                type Error = Answer;

                fn try_from(answer: Answer) -> Result<$type, Answer> {
                    match answer {
                        Answer::$name(answer) => Ok(answer),
                        other => Err(other),
                    }
                }
            }
        )+
    };
}

answers! {
    Done(()),
    Is(bool),
    Count(usize),
    Bytes(u64),
    ClockUs(i64),
    Took(Duration),
    Text(String),
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    Pid(Option<i32>),
    ProcessExit(ProcessExit),
    Ended(Option<ProcessExit>),
    Files(Listing),
    Flushes(Vec<Flush>),
    Resources(Resources),
    Opened(Box<LabOpened>),
    Node(Box<MadeNode>),
    Pooler(Box<MadePooler>),
    Link(Box<MadeLink>),
    Copied(DataCopied),
    Format(Format),
    Checksums(Checksums),
    Cut(PowerCutReport),
    Ran(ProgramEnded),
    Counters(LinkCounters),
    Cost(LinkCost),
    Shape(TrafficShape),
    Recorded(Vec<RequestLog>),
    Station(Box<MadeStation>),
    Packages(Packages),
    Upgraded(UpgradeReport),
    Archived(Vec<ArchivedFile>),
    Verified(BackupVerdict),
}

/// Files by name.
pub(crate) type Listing = Vec<(String, Vec<u8>)>;

/// An opened lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LabOpened {
    pub(crate) installation: Installation,
    /// The isolation that is in force.
    pub(crate) isolation: Isolation,
    pub(crate) directory: PathBuf,
    /// The user that its servers run as.
    pub(crate) user: SystemUser,
}

/// A node that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeNode {
    /// The address for clients.
    pub(crate) endpoint: Endpoint,
    /// The address for processes of its own host.
    pub(crate) near: Endpoint,
    /// The address for the rig's administration.
    pub(crate) admin: Endpoint,
    pub(crate) directory: PathBuf,
    /// Its data directory, as processes of the lab see it.
    pub(crate) data: PathBuf,
    /// The log that people read.
    pub(crate) log: PathBuf,
    /// The log that programs read.
    pub(crate) structured_log: PathBuf,
}

/// A pooler that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadePooler {
    /// The address for clients.
    pub(crate) endpoint: Endpoint,
    /// Its console as processes of its own host reach it.
    pub(crate) console: Endpoint,
    pub(crate) log: PathBuf,
}

/// A link that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeLink {
    /// The address to connect to instead of the server's.
    pub(crate) endpoint: Endpoint,
    /// The place where its counters can be read.
    pub(crate) tap: Option<LinkTap>,
}

/// A station that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeStation {
    pub(crate) directory: PathBuf,
    /// The directory that the data of its server are below: its disk's, where it has one.
    pub(crate) disk: PathBuf,
    /// The address on which its processes can be reached.
    pub(crate) address: String,
    /// The ports that are kept free for it.
    pub(crate) ports: Vec<u16>,
}

/// Packages that were unpacked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Packages {
    /// The directory that stands for `/`.
    pub(crate) root: PathBuf,
    /// Name, version and architecture of each, as its file is called.
    pub(crate) files: Vec<String>,
}

/// A copy of a node's data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DataCopied {
    /// The directory of its files.
    pub(crate) directory: PathBuf,
    /// The bytes in them.
    pub(crate) bytes: u64,
}

/// A client program that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProgramEnded {
    /// Its exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}
