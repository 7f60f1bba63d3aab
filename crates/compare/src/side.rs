//! The two servers: what the user says of them, and how they are built with the same data.

use std::path::{Path, PathBuf};

use lab::{Lab, LabConfig, Node, NodeConfig, Settings, StopMode};
use load::Control;
use pgbench::Console;
use pgbench::options::Invocation;
use wire::conninfo::{Conninfo, Given, Sources};

use crate::design::SIDES;
use crate::error::Error;

/// What the user says of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideOptions {
    /// Where its programs are; the installed PostgreSQL where nothing is given.
    pub bin: Option<PathBuf>,
    /// Settings of its own, in the order of the command line.
    pub settings: Vec<(String, String)>,
    /// A script that is run once after the data are there.
    pub sql: Option<PathBuf>,
}

/// What data both sides hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// pgbench's tables at this scale.
    Pgbench(u32),
    /// What a script makes.
    Script(PathBuf),
}

/// A running server.
pub(crate) struct Side {
    /// `A` or `B`.
    pub(crate) name: &'static str,
    /// Its PostgreSQL, as in `18.1`.
    pub(crate) version: String,
    pub(crate) node: Node,
    /// What clients connect to.
    pub(crate) conninfo: String,
    /// Its directory and its processes; they end with it.
    _lab: Lab,
}

/// How the sides are built.
pub(crate) struct Build<'a> {
    pub(crate) sides: &'a [SideOptions; 2],
    pub(crate) data: &'a Data,
    pub(crate) clients: u32,
    pub(crate) control: &'a Control,
}

/// The settings that both sides have unless the user says otherwise. Background work happens
/// between segments, by plan: a checkpoint of one side would slow the other's blocks.
fn settings(clients: u32, memory_bytes: u64, own: &[(String, String)]) -> Settings {
    let buffers_mib = (memory_bytes / 8 / (1 << 20)).clamp(32, 8_192);
    let mut settings: Settings = [
        ("shared_buffers", format!("{buffers_mib}MB")),
        ("max_connections", (clients + SPARE_CONNECTIONS).max(100).to_string()),
        ("max_wal_size", "16GB".to_owned()),
        ("checkpoint_timeout", "1d".to_owned()),
        ("autovacuum", "off".to_owned()),
        ("jit", "off".to_owned()),
    ]
    .into_iter()
    .collect();
    for (name, value) in own {
        settings.set(name, value);
    }
    settings
}

/// Connections beside the clients': administration.
const SPARE_CONNECTIONS: u32 = 10;

/// Builds both servers with the same data and starts them. B gets a copy of A's files where its
/// programs can read them; else each side loads the data itself.
pub(crate) fn build(build: &Build<'_>) -> Result<([Side; 2], DataOrigin), Error> {
    let (mut a, mut b) = (stopped(0, build)?, stopped(1, build)?);
    load(&mut a, build)?;
    let origin = match b.copy_of(&a) {
        Ok(()) => DataOrigin::Copied,
        // Another catalog version: the server does not start on such files.
        Err(_) => {
            load(&mut b, build)?;
            DataOrigin::LoadedTwice
        }
    };
    let memory = lab::machine::Machine::here().memory.total_bytes;
    for (side, options) in [&mut a, &mut b].into_iter().zip(build.sides) {
        side.node.start()?;
        if let Some(script) = &options.sql {
            run_script(&side.node, side.name, script)?;
        }
        side.node.stop(StopMode::Fast)?;
        side.node.configure(settings(build.clients, memory, &options.settings))?;
        side.node.start()?;
    }
    Ok(([a, b], origin))
}

/// A server without data.
fn stopped(index: usize, build: &Build<'_>) -> Result<Side, Error> {
    let installation = lab::find::find(build.sides[index].bin.as_deref())?;
    let version = installation.version().to_string();
    let lab = Lab::open(LabConfig::new(installation))?;
    let node = lab.node(SIDES[index], NodeConfig::new(Settings::new()))?;
    let conninfo = keyword_form(&node.endpoint().to_string());
    Ok(Side { name: SIDES[index], version, node, conninfo, _lab: lab })
}

/// Makes a side's data.
fn load(side: &mut Side, build: &Build<'_>) -> Result<(), Error> {
    let settings = [("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")];
    side.node.init()?;
    // Nothing is lost if the machine dies while data are loaded.
    side.node.configure(settings.into_iter().collect())?;
    side.node.start()?;
    fill(side, build)?;
    side.node.stop(StopMode::Fast)?;
    Ok(())
}

impl Side {
    /// Takes the files of another side, which is stopped, and sees whether it starts with them.
    fn copy_of(&mut self, other: &Side) -> Result<(), Error> {
        self.node.clone_data(&other.node)?;
        self.node.start()?;
        self.node.stop(StopMode::Fast)?;
        Ok(())
    }
}

/// How the data came to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataOrigin {
    /// File by file.
    Copied,
    /// By the same statements, from the same seed.
    LoadedTwice,
}

fn fill(side: &Side, build: &Build<'_>) -> Result<(), Error> {
    let scale = match build.data {
        Data::Script(path) => return run_script(&side.node, side.name, path),
        Data::Pgbench(scale) => scale,
    };
    let arguments = [
        "--initialize".to_owned(),
        "--quiet".to_owned(),
        format!("--scale={scale}"),
        side.conninfo.clone(),
    ];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let invocation = Invocation {
        program: "pgbench",
        command: "pgbench",
        arguments: &arguments,
        environment: &|_| None,
        ask_password: &|_| None,
        generator: Path::new(""),
        schema: None,
    };
    let mut console = Console::new(&mut out, &mut err, false);
    let code = pgbench::bench(&invocation, build.control, &mut console);
    if build.control.urgency() != load::Urgency::None {
        return Err(Error::Interrupted { doing: "loading the data" });
    }
    match code {
        0 => Ok(()),
        _ => {
            let why = String::from_utf8_lossy(&err).trim().to_owned();
            Err(Error::Data { side: side.name, why })
        }
    }
}

/// Runs a script in one go: one transaction, unless it says otherwise.
fn run_script(node: &Node, side: &'static str, path: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut client = node.connect()?;
    client.batch_execute(&text).map_err(|error| {
        let why = match error.as_db_error() {
            Some(said) => said.to_string(),
            None => error.to_string(),
        };
        Error::Data { side, why: format!("{}: {why}", path.display()) }
    })
}

/// The conninfo of one of the lab's servers, as the load engine reads it.
fn keyword_form(endpoint: &str) -> String {
    let given = Given { dbname: Some(endpoint.to_owned()), ..Given::default() };
    let sources = Sources {
        environment: &|_| None,
        read: &|_, _| None,
        exists: &|_| false,
        os_user: None,
        home: None,
        socket_directories: &[],
    };
    match Conninfo::resolve(&given, &sources) {
        Ok(conninfo) => conninfo.to_keyword_string(),
        Err(_) => endpoint.to_owned(),
    }
}
