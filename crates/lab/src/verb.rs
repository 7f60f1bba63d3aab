//! The requests to a lab.

use std::path::PathBuf;
use std::time::Duration;

use os::command::ProcessCommand;
use os::throttle::IoLimits;
use serde::{Deserialize, Serialize};
use terms::{DataPart, Direction, DiskFault, DiskRequest, FailingRequests, FileSystem, StopMode};

use crate::archive::RestoreOrder;
use crate::client_run::ClientRun;
use crate::endpoint::Endpoint;
use crate::find::Installation;
use crate::link_config::LinkConfig;
use crate::node_config::NodeConfig;
use crate::pooler_config::PoolerConfig;
use crate::station_config::{Peer, ProcessAct, StationConfig, StationProcess};
use crate::upgrade::UpgradeMode;
use terms::Settings;

/// A request to a lab or to one of its objects. The answer is nothing where a variant does not say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verb {
    // Of the lab itself, object 0.
    /// Tell if the lab can still be used.
    IsAlive,
    /// Kill every PostgreSQL server of the lab: how many processes.
    KillServers,
    /// Write everything of the directory's file system to its disk.
    SyncLab,
    /// Run pg_test_fsync, so many seconds for each method: a list of [`crate::Flush`].
    TestFlush(u64),
    /// Tell what the machine has: [`crate::Resources`].
    Resources,
    /// Tell the wall clock, in microseconds since 1970.
    WallClock,
    /// Read every file directly in a directory of the lab: [`crate::answer::Listing`].
    Read(PathBuf),

    /// Unpack packages of the distribution: [`crate::answer::Packages`].
    Unpack(Vec<String>),

    // They make the object.
    /// Make it a node: [`crate::answer::MadeNode`].
    MakeNode { name: String, config: NodeConfig },
    /// Make it a pooler: [`crate::answer::MadePooler`].
    MakePooler { name: String, config: PoolerConfig },
    /// Make it another process: its log.
    MakeProcess { name: String, command: ProcessCommand },
    /// Make it a station: [`crate::answer::MadeStation`].
    MakeStation { name: String, config: StationConfig },
    /// Make it a link: [`crate::answer::MadeLink`].
    MakeLink { name: String, config: LinkConfig },
    /// Give it up: what runs is killed, a copy is removed, a limit is lifted.
    Drop,

    // Of nodes, poolers and processes.
    /// Start it, and wait until it answers.
    Start,
    /// Stop it: [`os::init::ProcessExit`].
    Stop(StopMode),
    /// Send SIGKILL: how many processes.
    Kill,
    /// Send SIGSTOP: how many processes.
    Pause,
    /// Send SIGCONT: how many processes.
    Resume,
    /// Tell if it runs.
    IsRunning,
    /// Tell how it ended by itself: [`os::init::ProcessExit`] or none.
    Exit,
    /// Tell its root process, or none; of links, too.
    Pid,
    /// The end of its log since it was last started.
    LogTail,
    /// All of its log.
    LogText,

    // Of nodes.
    /// Run initdb.
    Init,
    /// Take these settings from the next start or reload on.
    Configure(Settings),
    /// Take these lines of configuration, too.
    AppendConf(String),
    /// Read the settings again.
    Reload,
    /// Limit its I/O; the limit becomes the object of that number.
    LimitIo { limit: u32, limits: IoLimits },
    /// Limit its CPU time to that of so many CPUs; the limit becomes the object of that number.
    LimitCpus { limit: u32, cpus: f64 },
    /// Kill a server process: the time until the server accepted connections.
    KillBackend { memory_bytes: Option<u64>, timeout: Duration },
    /// Make the data of a standby from a base backup.
    InitFromBackup { from: Backup, upstream: Upstream },
    /// Take back by pg_rewind what the other server does not have, and be its standby: pg_rewind's
    /// last words.
    Rewind { from: Backup, upstream: Upstream },
    /// Stream from there.
    Follow(Upstream),
    /// Tell if its data are those of a standby.
    IsStandby,
    /// Make it a primary.
    Promote,
    /// Copy its data; the copy becomes the object of that number: [`crate::answer::Copied`].
    Snapshot(u32),
    /// Tell where other processes of its host can read the data of the stopped node.
    StoppedData,
    /// Take the data files of that directory.
    InitFromCopy(PathBuf),
    /// Remove the data, and tell where others are to be put.
    PlaceForData,
    /// Recover data that were put there, and open them to the lab's superuser.
    AdoptData,
    /// Make the data by pg_upgrade from those there, of a stopped server of that installation:
    /// [`crate::UpgradeReport`].
    UpgradeData { from: PathBuf, old: Box<Installation>, mode: UpgradeMode },
    /// Take the data from the images of disks, that of the data first, without mounting them.
    InitFromImages { images: Vec<(DataPart, PathBuf)>, kind: FileSystem },
    /// Exchange its data directory with that one, of another node that is stopped.
    ExchangeData(PathBuf),
    /// Run pg_controldata: [`crate::Format`].
    Format,
    /// Run pg_checksums: [`crate::Checksums`].
    CheckChecksums,
    /// Run pg_resetwal.
    ResetWal,
    /// Take a base backup of that name: where it lies.
    TakeBackup(String),
    /// Run pg_verifybackup on a base backup: [`crate::BackupVerdict`].
    VerifyBackup(PathBuf),
    /// Restore it from a base backup and an archive.
    Restore(Box<RestoreOrder>),
    /// List the archive: a list of [`crate::ArchivedFile`].
    ReadArchive,
    /// Move the clock that its processes see by so many microseconds.
    StepClock(i64),
    /// Tell where the archive lies.
    ArchiveDirectory,
    /// Cut the power: [`fault::disk::Cut`].
    PowerCut { seed: u64, at: Option<DiskRequest> },
    /// Have its disk fail from that request on.
    FailDisk { at: DiskRequest, fault: DiskFault },
    /// Have some requests of its disks fail: the number of blocks that they are about.
    FailRequests(FailingRequests),
    /// End that: the number of requests that failed.
    HealDisk,
    /// Have its block disk take longer from that request on; nothing heals it.
    SlowDisk(Option<(DiskRequest, Duration)>),
    /// Flush its disk.
    Sync,
    /// Keep a log of what its disk is asked for: from now on, if the disk was made for that, or, with the
    /// bytes that it may take, from when the disk is switched on next.
    RecordWrites(Option<u64>),
    /// End that log: [`fault::disk::Recorded`] of each of its disks.
    EndRecord,
    /// Kill it and switch its disk off, so that it starts from the state in the file of
    /// [`Verb::StatePaths`].
    LoadState,
    /// Kill it and switch its disk off.
    PowerOff,
    /// Tell where the state goes that each of its disks is switched on with.
    StatePaths,
    /// Tell where its disk's files are.
    DiskDirectory,
    /// Bytes of its data.
    DataBytes,
    /// Run a client program of its installation: [`crate::answer::Ran`].
    RunClient(ClientRun),

    // Of stations.
    /// Take these processes.
    Equip(Vec<StationProcess>),
    /// Do something to one process: how many it reached.
    OfProcess(String, ProcessAct),
    /// Run a command to its end: [`crate::answer::Ran`].
    RunIn(StationRun),
    /// Cut it off from others: the proof in words.
    CutOff(Vec<Peer>, Direction),
    /// End its cuts: the proof in words.
    Rejoin,
    /// Copy its files aside.
    KeepFiles,
    /// Put back the files that were copied aside.
    ResetFiles,

    // Of links.
    /// The bytes that have passed: [`fault::link::Counters`].
    Counters,
    /// A round trip: [`crate::LinkCost`].
    Measure,
    /// Its delay and bandwidth of now: [`fault::link::Shape`].
    Shape,
    /// Another bandwidth, in bytes a second.
    Bandwidth(Option<u64>),
    /// Another delay: its proof in words.
    Delay(Duration),
    /// A cut: its proof in words.
    Cut(Direction),
    /// A reset of all connections: its proof in words.
    Reset,
    /// The end of a cut: its proof in words.
    Heal,
}

impl Verb {
    /// Longest time in which a lab that works as it should has answered. It has limits of its own for the
    /// programs that it runs and for what it waits for; the rest is copying, removing and a busy machine.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            // A look, a signal or a setting.
            Self::IsAlive
            | Self::KillServers
            | Self::Resources
            | Self::WallClock
            | Self::Read(_)
            | Self::Kill
            | Self::Pause
            | Self::Resume
            | Self::IsRunning
            | Self::Exit
            | Self::Pid
            | Self::LogTail
            | Self::LogText
            | Self::Configure(_)
            | Self::AppendConf(_)
            | Self::Reload
            | Self::LimitIo { .. }
            | Self::LimitCpus { .. }
            | Self::Follow(_)
            | Self::IsStandby
            | Self::Equip(_)
            | Self::StatePaths
            | Self::DiskDirectory
            | Self::FailDisk { .. }
            | Self::FailRequests(_)
            | Self::HealDisk
            | Self::SlowDisk(_)
            | Self::ArchiveDirectory
            | Self::StepClock(_)
            | Self::Counters
            | Self::Shape
            | Self::Bandwidth(_) => Duration::from_secs(300),
            // Programs and waits, which end by their own limits.
            Self::MakeNode { .. }
            | Self::MakePooler { .. }
            | Self::MakeProcess { .. }
            | Self::MakeStation { .. }
            | Self::MakeLink { .. }
            | Self::Start
            | Self::Stop(_)
            | Self::Init
            | Self::Promote
            | Self::Format
            | Self::ResetWal
            | Self::ExchangeData(_)
            | Self::OfProcess(..)
            | Self::CutOff(..)
            | Self::Rejoin
            | Self::PowerCut { .. }
            | Self::RecordWrites(_)
            | Self::LoadState
            | Self::PowerOff
            | Self::Measure
            | Self::Delay(_)
            | Self::Cut(_)
            | Self::Reset
            | Self::Heal
            | Self::Unpack(_) => PROGRAM,
            Self::KillBackend { timeout, .. } => PROGRAM + *timeout,
            Self::RunIn(run) => PROGRAM + run.timeout,
            Self::TestFlush(seconds) => PROGRAM + 10 * Duration::from_secs(*seconds),
            // They move or read all data, of which there may be much.
            Self::SyncLab
            | Self::Drop
            | Self::InitFromBackup { .. }
            | Self::Rewind { .. }
            | Self::Snapshot(_)
            | Self::StoppedData
            | Self::InitFromCopy(_)
            | Self::PlaceForData
            | Self::UpgradeData { .. }
            | Self::AdoptData
            | Self::InitFromImages { .. }
            | Self::CheckChecksums
            | Self::TakeBackup(_)
            | Self::VerifyBackup(_)
            | Self::Restore(_)
            | Self::ReadArchive
            | Self::Sync
            | Self::EndRecord
            | Self::DataBytes
            | Self::RunClient(_)
            | Self::KeepFiles
            | Self::ResetFiles => Duration::from_secs(4 * 3600),
        }
    }

    /// Its name on the line.
    pub(crate) fn word(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            Ok(serde_json::Value::Object(fields)) => {
                fields.into_iter().map(|(word, _)| word).collect()
            }
            // Plain data always have such a form.
            _ => "a question".to_owned(),
        }
    }
}

/// Time of a program that has a limit, and of what is done around it.
const PROGRAM: Duration = Duration::from_secs(1800);

/// The server that a base backup is taken of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Backup {
    pub(crate) of: String,
    pub(crate) at: Endpoint,
}

/// The server that a standby follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Upstream {
    pub(crate) conninfo: String,
    pub(crate) slot: String,
}

/// A command to be run in a station.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StationRun {
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) timeout: Duration,
}
