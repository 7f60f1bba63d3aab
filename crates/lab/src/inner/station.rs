//! A place for processes that are not the lab's own kinds: a directory, a log for each process, and, if
//! it is asked for, a network namespace with an address on the lab's switch.
//!
//! Each process works in a directory of its own below the station's, which is how it is found with all
//! that descends from it. A PostgreSQL server that one of them starts works in its data directory.

mod disk;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use os::init::ProcessExit;
use os::user::SystemUser;
use rustix::process::Signal;
use terms::{Direction, EndSignal, StopMode};

use crate::answer::{MadeStation, ProgramEnded};
use crate::copy::{copy_into, copy_tree};
use crate::error::Error;
use crate::files::{make_directory, read_file, remove_tree, write_file};
use crate::inner::network::Network;
use crate::inner::port::Port;
use crate::inner::program::{Program, Runs};
use crate::inner::shared::Shared;
use crate::inner::switch::{CutWay, Switch};
use crate::listen::Listen;
use crate::log;
use crate::station_config::{ProcessAct, StationConfig, StationProcess};
use crate::verb::StationRun;
use crate::wait::wait_until;
use disk::OwnDisk;

/// Processes with a directory, and perhaps a network, in common.
#[derive(Debug)]
pub(crate) struct Station {
    /// The directory and the network; the processes are below it.
    program: Program,
    address: String,
    ports: Vec<Port>,
    data: Option<PathBuf>,
    disk: Option<OwnDisk>,
    switch: Option<Arc<Switch>>,
    processes: Vec<Equipped>,
    cuts: Vec<CutWay>,
    kept: Option<PathBuf>,
    runs: u32,
}

/// A process and its number in the lab since it was last started.
#[derive(Debug)]
struct Equipped {
    is: StationProcess,
    pid: Option<i32>,
}

impl Station {
    /// Makes the directory and, on `switch`, the network.
    pub(crate) fn new(
        shared: Arc<Shared>,
        name: &str,
        config: StationConfig,
        switch: Option<Arc<Switch>>,
    ) -> Result<Self, Error> {
        let owner = shared.user;
        let ports = (0..config.ports).map(|_| Port::take(&shared, Listen::Loopback, None, name));
        let ports = ports.collect::<Result<Vec<_>, Error>>()?;
        let mut program = Program::new(shared, name, owner)?;
        program.make_directory()?;
        let mut address = "127.0.0.1".to_owned();
        if let Some(switch) = &switch {
            let network = Network::make(&program.shared, name)?;
            address = switch.plug(&network, name)?;
            program.network = Some(network);
        }
        let disk = config.disk.map(|disk| OwnDisk::new(disk, &program));
        program.file_system = disk.as_ref().map(OwnDisk::mount_point);
        let place = program.file_system.clone().unwrap_or_else(|| program.directory.clone());
        let data = config.data.map(|data| place.join(data));
        let (processes, cuts, kept, runs) = (Vec::new(), Vec::new(), None, 0);
        let mut station =
            Self { program, address, ports, data, disk, switch, processes, cuts, kept, runs };
        station.format_disk()?;
        Ok(station)
    }

    pub(crate) fn made(&self) -> MadeStation {
        let ports = self.ports.iter().map(|port| port.number).collect();
        let (directory, address) = (self.program.directory.clone(), self.address.clone());
        let disk = self.program.file_system.clone().unwrap_or_else(|| directory.clone());
        MadeStation { directory, disk, address, ports }
    }

    pub(crate) fn network(&self) -> Option<&Network> {
        self.program.network.as_ref()
    }

    pub(crate) fn equip(&mut self, processes: Vec<StationProcess>) -> Result<(), Error> {
        self.expect_none_runs("equipping")?;
        self.processes = processes.into_iter().map(|is| Equipped { is, pid: None }).collect();
        Ok(())
    }

    pub(crate) fn process(&mut self, name: &str, act: ProcessAct) -> Result<usize, Error> {
        if name == StationProcess::SERVER {
            return self.server(act);
        }
        let known = self.processes.iter().position(|one| one.is.name == name);
        let index = known.ok_or_else(|| self.no_process(name))?;
        match act {
            ProcessAct::Start => self.launch(index).map(|()| 1),
            ProcessAct::Stop => self.end(index).map(|()| 1),
            ProcessAct::Kill => self.signal_process(index, Signal::KILL),
            ProcessAct::Pause => self.signal_process(index, Signal::STOP),
            ProcessAct::Resume => self.signal_process(index, Signal::CONT),
            ProcessAct::Look => self.process_runs(index).map(usize::from),
        }
    }

    /// The same for the server that one of the processes has started.
    fn server(&self, act: ProcessAct) -> Result<usize, Error> {
        let Some(data) = &self.data else { return Err(self.no_process(StationProcess::SERVER)) };
        let (doing, signal) = match act {
            ProcessAct::Kill => ("killing the server", Signal::KILL),
            ProcessAct::Pause => ("pausing the server", Signal::STOP),
            ProcessAct::Resume => ("resuming the server", Signal::CONT),
            // No process reacts to this signal: those that it reaches are only counted.
            ProcessAct::Look => ("looking for the server", Signal::WINCH),
            ProcessAct::Start | ProcessAct::Stop => {
                return Err(self
                    .program
                    .state("starting or stopping the server", "is not its own to start"));
            }
        };
        self.program.signal_below(doing, data, None, signal)
    }

    fn launch(&mut self, index: usize) -> Result<(), Error> {
        if self.process_runs(index)? {
            let state = "runs the process already";
            return Err(self.program.state("starting a process of", state));
        }
        self.mend_disk()?;
        let process = &self.processes[index].is;
        let (directory, owner) = (self.program.file(&process.name), self.program.owner);
        if !directory.is_dir() {
            make_directory(&directory, owner)?;
        }
        for (name, text) in &process.files {
            write_file(&directory.join(name), text, owner)?;
        }
        let (log, _) = self.log_of(process);
        let Some(command) = self.command(&process.command, &process.environment, &directory) else {
            return Err(self.no_process(&process.name));
        };
        let mut command = command
            .stdout(ProcessOutput::File(log.clone()))
            .stderr(ProcessOutput::File(log))
            .parent_death_signal(Signal::KILL);
        if process.as_root {
            command.user = None;
        }
        let network = self.program.network.as_ref().map(Network::id);
        let pid = self.program.shared.spawn_in(&command, network)?;
        self.processes[index].pid = Some(pid);
        Ok(())
    }

    /// A command of the study in a directory of this station; none without a program.
    fn command(
        &self,
        words: &[String],
        environment: &[(String, String)],
        directory: &std::path::Path,
    ) -> Option<ProcessCommand> {
        let (program, args) = words.split_first()?;
        let command = self.program.shared.command_of(program.as_ref(), directory);
        let named = |(name, value): &(String, String)| (name.clone(), value.clone());
        let command = command.args(args.iter().map(OsStr::new));
        Some(
            environment
                .iter()
                .map(named)
                .fold(command, |command, (name, value)| command.env(name, value)),
        )
    }

    /// Asks one process to end and waits for it.
    fn end(&mut self, index: usize) -> Result<(), Error> {
        let (Some(pid), true) = (self.processes[index].pid, self.process_runs(index)?) else {
            return Err(self.program.state("stopping a process of", "does not run it"));
        };
        let (signal, mode) = match self.processes[index].is.ends_by {
            EndSignal::Term => (Signal::TERM, StopMode::Fast),
            EndSignal::Int => (Signal::INT, StopMode::Fast),
            EndSignal::Quit => (Signal::QUIT, StopMode::Immediate),
        };
        // One that stands still hears nothing.
        self.signal_process(index, Signal::CONT)?;
        let doing = "stopping";
        let init = self.program.init(doing)?;
        let failed = |source| Error::Process { doing, node: self.program.name.clone(), source };
        init.signal(pid, signal).map_err(failed)?;
        let ended = wait_until(STOP_TIMEOUT, || Ok((!self.process_runs(index)?).then_some(())))?;
        if ended.is_none() {
            let (node, log) = (self.program.name.clone(), self.log_tail());
            return Err(Error::Stop { node, mode, waited: STOP_TIMEOUT, log });
        }
        self.processes[index].pid = None;
        Ok(())
    }

    fn signal_process(&self, index: usize, signal: Signal) -> Result<usize, Error> {
        let place = self.program.file(&self.processes[index].is.name);
        // The server may be a descendant of the process that started it, and is not part of it.
        self.program.signal_below("signalling a process of", &place, self.data.as_deref(), signal)
    }

    fn process_runs(&self, index: usize) -> Result<bool, Error> {
        let Some(pid) = self.processes[index].pid else { return Ok(false) };
        let doing = "asking for the end";
        let failed = |source| Error::Process { doing, node: self.program.name.clone(), source };
        Ok(self.program.init(doing)?.exit(pid).map_err(failed)?.is_none())
    }

    fn expect_none_runs(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Err(self.program.state(doing, "is running")),
            false => Ok(()),
        }
    }

    /// The log of a process, and whose it is. What root writes lies where only root can put a file.
    fn log_of(&self, process: &StationProcess) -> (PathBuf, SystemUser) {
        match process.as_root {
            false => (self.program.file(format!("{}.log", process.name)), self.program.owner),
            true => {
                let name = format!("{}.{}.log", self.program.name, process.name);
                (self.program.directory.with_file_name(name), SystemUser::current())
            }
        }
    }

    fn no_process(&self, name: &str) -> Error {
        let known = self.processes.iter().map(|one| one.is.name.clone());
        let known = known.chain(self.data.as_ref().map(|_| StationProcess::SERVER.to_owned()));
        let (node, process) = (self.program.name.clone(), name.to_owned());
        Error::NoProcess { node, process, known: known.collect() }
    }

    pub(crate) fn run(&mut self, run: &StationRun) -> Result<ProgramEnded, Error> {
        self.runs += 1;
        let directory = self.program.file("run");
        if !directory.is_dir() {
            make_directory(&directory, self.program.owner)?;
        }
        let output = self.program.file(format!("run{}.log", self.runs));
        let Some(command) = self.command(&run.command, &run.environment, &directory) else {
            return Err(self.no_process(""));
        };
        let command = command
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()))
            .parent_death_signal(Signal::KILL);
        let network = self.program.network.as_ref().map(Network::id);
        let exit = self.program.shared.run_in(&command, network, run.timeout)?;
        let stdout = self.program.text(&output);
        let code = match exit {
            ProcessExit::Code(code) => Some(code),
            ProcessExit::Signal(_) => None,
        };
        Ok(ProgramEnded { code, stdout, stderr: String::new() })
    }

    /// As [`crate::Station::cut`]. `peers` are the networks of the other ends, none for the clients',
    /// and their addresses.
    pub(crate) fn cut(
        &mut self,
        peers: Vec<(Option<Network>, String)>,
        direction: Direction,
    ) -> Result<String, Error> {
        let (Some(switch), Some(own)) = (self.switch.clone(), self.program.network.clone()) else {
            return Err(self.program.state("cutting off", "has no network of its own"));
        };
        let count = peers.len();
        for (network, address) in peers {
            let address = if network.is_none() { switch.host_address() } else { address };
            if direction.has_to() {
                let way = CutWay { sender: network, receiver: self.address.clone() };
                switch.cut(&way)?;
                self.cuts.push(way);
            }
            if direction.has_from() {
                let way = CutWay { sender: Some(own.clone()), receiver: address };
                switch.cut(&way)?;
                self.cuts.push(way);
            }
        }
        let way = match direction {
            Direction::Both => "in both directions",
            Direction::To => "to it",
            Direction::From => "from it",
        };
        Ok(format!("packets {way} are dropped, of {}", terms::counted(count as u64, "peer")))
    }

    pub(crate) fn heal(&mut self) -> Result<String, Error> {
        let Some(switch) = self.switch.clone() else {
            return Err(self.program.state("healing", "has no network of its own"));
        };
        let count = self.cuts.len();
        for way in self.cuts.drain(..) {
            switch.mend(&way)?;
        }
        Ok(match count {
            1 => "1 way is open again".to_owned(),
            count => format!("{count} ways are open again"),
        })
    }

    pub(crate) fn keep_files(&mut self) -> Result<(), Error> {
        self.expect_none_runs("copying the files of")?;
        let directory = self.program.shared.new_snapshot_directory();
        copy_tree(&self.program.directory, &directory, self.program.owner)?;
        self.kept = Some(directory);
        self.keep_data()
    }

    pub(crate) fn reset_files(&mut self) -> Result<(), Error> {
        self.expect_none_runs("restoring the files of")?;
        // What was never copied is not restored.
        let Some(kept) = &self.kept else { return Ok(()) };
        remove_tree(&self.program.directory)?;
        self.program.make_directory()?;
        copy_into(kept, &self.program.directory, self.program.owner)?;
        self.reset_data()
    }
}

impl Runs for Station {
    fn program(&self) -> &Program {
        &self.program
    }

    fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Starts every process that does not run, in the order of the study.
    fn start(&mut self) -> Result<(), Error> {
        let mut started = 0;
        for index in 0..self.processes.len() {
            if !self.process_runs(index)? {
                self.launch(index)?;
                started += 1;
            }
        }
        match started {
            0 => Err(self.program.state("starting", "is running")),
            _ => Ok(()),
        }
    }

    /// Ends its processes, the last one first, and kills what is left.
    fn stop(&mut self, _: StopMode) -> Result<ProcessExit, Error> {
        for index in (0..self.processes.len()).rev() {
            if self.process_runs(index)? {
                self.end(index)?;
            }
        }
        self.kill9()?;
        Ok(ProcessExit::Code(0))
    }

    fn stop_signal(&self, _: StopMode) -> (Signal, Duration) {
        (Signal::TERM, STOP_TIMEOUT)
    }

    fn kill9(&mut self) -> Result<usize, Error> {
        self.processes.iter_mut().for_each(|one| one.pid = None);
        self.program.kill9()
    }

    fn pause(&mut self) -> Result<usize, Error> {
        self.program.signal_below("pausing", &self.program.directory, None, Signal::STOP)
    }

    fn resume(&mut self) -> Result<usize, Error> {
        self.program.signal_below("resuming", &self.program.directory, None, Signal::CONT)
    }

    fn is_running(&self) -> Result<bool, Error> {
        for index in 0..self.processes.len() {
            if self.process_runs(index)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn exit(&self) -> Result<Option<ProcessExit>, Error> {
        Ok(None)
    }

    fn log(&self) -> PathBuf {
        self.program.directory.clone()
    }

    fn log_text(&self) -> String {
        let text = |one: &Equipped| {
            let (log, owner) = self.log_of(&one.is);
            // A program that wrote nothing has no log.
            let text = read_file(&log, owner).unwrap_or_default();
            format!("{}:\n{text}", one.is.name)
        };
        self.processes.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    fn log_tail(&self) -> String {
        let tail = |one: &Equipped| {
            let (log, owner) = self.log_of(&one.is);
            format!("{}:\n{}", one.is.name, log::tail(&log, 0, owner))
        };
        self.processes.iter().map(tail).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        // The init kills what is left when the lab ends.
        let _ = self.kill9();
    }
}

/// A manager stops its server before itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
