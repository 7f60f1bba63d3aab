//! A station of a lab: processes that a study names, with the verbs of [`Part`](crate::Part) for all of
//! them at once, and verbs for one of them.

use std::path::Path;
use std::time::Duration;

use fault::disk::PowerCutReport;
use terms::{Direction, DiskFault, DiskRequest};

use crate::answer::{MadeStation, ProgramEnded};
use crate::error::Error;
use crate::open_lab::Object;
use crate::part::{Part, is_a_part};
use crate::station_config::{Peer, ProcessAct, StationProcess};
use crate::verb::{StationRun, Verb};

/// Several processes that live, stand still, are cut off and die as one, or in part. It is killed when
/// it is dropped.
#[derive(Debug)]
pub struct Station {
    pub(crate) part: Part,
    made: MadeStation,
}

is_a_part!(Station);

impl Station {
    pub(crate) fn new(object: Object, name: &str, made: MadeStation) -> Station {
        let log = made.directory.clone();
        Station { part: Part::new(object, name, log), made }
    }

    /// The address on which its processes can be reached.
    pub fn address(&self) -> &str {
        &self.made.address
    }

    /// The ports that are kept free for it.
    pub fn ports(&self) -> &[u16] {
        &self.made.ports
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.made.directory
    }

    /// The directory below which the data of its server are: its disk's, where it has one, else its own.
    #[must_use]
    pub fn disk(&self) -> &Path {
        &self.made.disk
    }

    /// Itself, as the end of another station's cut.
    pub fn peer(&self) -> Peer {
        Peer::Station(self.object.number, self.made.address.clone())
    }

    /// Gives it its processes, in the place of what it had. Nothing is started.
    pub fn equip(&self, processes: Vec<StationProcess>) -> Result<(), Error> {
        self.ask(Verb::Equip(processes))
    }

    /// Does something to one of its processes, or to [`StationProcess::SERVER`]; returns how many
    /// operating system processes it reached.
    pub fn process(&self, name: &str, act: ProcessAct) -> Result<usize, Error> {
        self.ask(Verb::OfProcess(name.to_owned(), act))
    }

    /// Runs a command in it to its end, and returns its exit code and what it said; for another thread to do.
    pub fn run_later(
        &self,
        command: Vec<String>,
        environment: Vec<(String, String)>,
        timeout: Duration,
    ) -> impl FnOnce() -> Result<(Option<i32>, String), Error> + Send + use<> {
        let run = self.object.later(Verb::RunIn(StationRun { command, environment, timeout }));
        move || run().map(|ProgramEnded { code, stdout, .. }| (code, stdout))
    }

    /// Lets no packet pass between it and `peers`, as seen from it: to it, from it, or both; returns
    /// the proof in words.
    ///
    /// # Errors
    /// [`Error::State`] if it has no network of its own; the words of `ip`.
    pub fn cut(&self, peers: Vec<Peer>, direction: Direction) -> Result<String, Error> {
        self.ask(Verb::CutOff(peers, direction))
    }

    /// Ends all its cuts.
    pub fn heal(&self) -> Result<String, Error> {
        self.ask(Verb::Rejoin)
    }

    /// Copies its files aside, once; nothing of it may run.
    pub fn keep_files(&self) -> Result<(), Error> {
        self.ask(Verb::KeepFiles)
    }

    /// Puts back the files that were copied aside; nothing of it may run.
    pub fn reset_files(&self) -> Result<(), Error> {
        self.ask(Verb::ResetFiles)
    }

    /// Cuts the power of its disk and kills all its processes. The disk is switched on when a process of it
    /// is started next. `seed` decides what a block disk loses. With `at` the power of a block disk is cut
    /// when that request comes.
    ///
    /// # Errors
    /// [`Error::State`] if it has no disk of its own; [`Error::Disk`].
    pub fn power_cut(&self, seed: u64, at: Option<DiskRequest>) -> Result<PowerCutReport, Error> {
        self.ask(Verb::PowerCut { seed, at })
    }

    /// Has its block disk fail from that request on. It works again when a process of the station is
    /// started after all of them have ended.
    ///
    /// # Errors
    /// [`Error::State`] if it has no disk of its own; [`Error::Disk`].
    pub fn fail_disk(&self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        self.ask(Verb::FailDisk { at, fault })
    }

    /// Has its block disk take so much longer for each request of a kind from that one on; with nothing, it
    /// is as fast as before.
    ///
    /// # Errors
    /// [`Error::State`] if it has no disk of its own; [`Error::Disk`].
    pub fn slow_disk(&self, slow: Option<(DiskRequest, Duration)>) -> Result<(), Error> {
        self.ask(Verb::SlowDisk(slow))
    }

    /// Makes sure that what it has written so far survives a cut; without a disk of its own there is
    /// nothing to do.
    pub fn sync(&self) -> Result<(), Error> {
        self.ask(Verb::Sync)
    }
}
