//! Two servers that pgrig makes, with the same data.

use std::path::Path;

use lab::{Lab, LabConfig, Node, NodeConfig, Server, Settings, StopMode};
use pgbench::Console;
use pgbench::options::Invocation;
use record::comparison::{DataOrigin, Renewal};
use server::message::with_detail;

use crate::arena::Servers;
use crate::contest::Ground;
use crate::design::SIDES;
use crate::error::Error;
use crate::request::Request;
use crate::side::{Data, Side, SideKind, read};
use crate::{room, same};

/// Connections beside the clients': administration.
const SPARE_CONNECTIONS: u32 = 10;

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

/// A node before it is a side.
struct Draft {
    name: &'static str,
    node: Node,
    lab: Lab,
}

/// Builds both servers with the same data and starts them. B gets a copy of A's files where its
/// programs can read them; else each side loads the data itself.
pub(crate) fn build(
    request: &Request,
    control: &load::Control,
) -> Result<(Servers, DataOrigin), Error> {
    let (mut a, mut b) = (stopped(0, request)?, stopped(1, request)?);
    let memory = lab::machine::Machine::here().memory;
    // Both servers have room for all clients: which one runs is decided block by block.
    let clients = 2 * request.workload.clients;
    let settings =
        [0, 1].map(|side| settings(clients, memory.total_bytes, &request.sides[side].settings));
    room::memory(&settings, request.workload.clients, memory)?;
    room::disk(a.node.directory(), &request.data)?;
    load(&mut a, request, control)?;
    let origin = if can_read(&mut b, &a)? {
        b.node.clone_data(&a.node)?;
        DataOrigin::Copied
    } else {
        load(&mut b, request, control)?;
        DataOrigin::LoadedTwice
    };
    let [mut a, mut b] = [a, b].map(Draft::side);
    for side in [&mut a, &mut b] {
        node(side).start()?;
    }
    if origin == DataOrigin::LoadedTwice {
        same::check([&a, &b], None)?;
    }
    for ((side, settings), options) in
        [&mut a, &mut b].into_iter().zip(settings).zip(&request.sides)
    {
        if let Some(script) = &options.sql {
            run_script(side, script, None)?;
        }
        let node = node(side);
        node.stop(StopMode::Fast)?;
        node.configure(settings)?;
        node.start()?;
    }
    // A script of one side changes its data: then they are no copy of the other's.
    let has_scripts = request.sides.iter().any(|side| side.sql.is_some());
    let renewal = match origin {
        DataOrigin::Copied if !has_scripts => Renewal::Exchanged,
        _ => Renewal::Restarted,
    };
    Ok((Servers::new([a, b], renewal), origin))
}

impl Draft {
    fn side(self) -> Side {
        let conninfo = self.node.endpoint().to_string();
        Side {
            name: self.name,
            version: self.node.installation().version().to_string(),
            conninfo: keyword_form(&conninfo),
            server: Server::Node(Box::new(self.node)),
            session: Vec::new(),
            kind: SideKind::Lab { _lab: self.lab },
        }
    }
}

fn node(side: &mut Side) -> &mut Node {
    side.server.node().expect("pgrig has made this server")
}

/// A server without data.
fn stopped(index: usize, request: &Request) -> Result<Draft, Error> {
    let installation = lab::find::find(request.sides[index].bin.as_deref())?;
    let lab = Lab::open(LabConfig::new(installation))?;
    let node = lab.node(SIDES[index], NodeConfig::new(Settings::new()))?;
    Ok(Draft { name: SIDES[index], node, lab })
}

/// Makes a side's data.
fn load(side: &mut Draft, request: &Request, control: &load::Control) -> Result<(), Error> {
    let settings = [("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")];
    side.node.init()?;
    // Nothing is lost if the machine dies while data are loaded.
    side.node.configure(settings.into_iter().collect())?;
    side.node.start()?;
    let conninfo = keyword_form(&side.node.endpoint().to_string());
    match &request.data {
        Data::Script(path) => {
            let mut client = side.node.connect()?;
            run_text(&mut client, side.name, path, Some(request.common.seed))?;
        }
        Data::Pgbench(scale) => pgbench_tables(side.name, &conninfo, *scale, None, control)?,
        Data::Found => {}
    }
    let bytes = side.node.value("SELECT sum(pg_database_size(oid)) FROM pg_database")?;
    side.node.stop(StopMode::Fast)?;
    room::copy(side.node.directory(), bytes.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Whether B's programs can read the files of A, which is stopped: those that they make themselves
/// have the same format.
fn can_read(b: &mut Draft, a: &Draft) -> Result<bool, Error> {
    if a.node.installation() == b.node.installation() {
        return Ok(true);
    }
    b.node.init()?;
    Ok(a.node.format()? == b.node.format()?)
}

/// pgbench's tables, in a schema if one is given.
pub(crate) fn pgbench_tables(
    side: &'static str,
    conninfo: &str,
    scale: u32,
    schema: Option<&str>,
    control: &load::Control,
) -> Result<(), Error> {
    let arguments = [
        "--initialize".to_owned(),
        "--quiet".to_owned(),
        format!("--scale={scale}"),
        conninfo.to_owned(),
    ];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let invocation = Invocation::of(&arguments, schema);
    let mut console = Console::new(&mut out, &mut err, false);
    let made = pgbench::initialise(&invocation, control, &mut console);
    if control.urgency() != load::Urgency::None {
        return Err(Error::Interrupted { doing: "loading the data" });
    }
    made.map_err(|complaint| Error::Data { side: side.to_owned(), why: complaint.message() })
}

/// Runs a script in one go: one transaction, unless it says otherwise. `seed` is that of
/// `random()`.
fn run_script(side: &Side, path: &Path, seed: Option<u64>) -> Result<(), Error> {
    run_text(&mut side.connect()?, side.name, path, seed)
}

fn run_text(
    client: &mut server::Client,
    side: &'static str,
    path: &Path,
    seed: Option<u64>,
) -> Result<(), Error> {
    let text = read(path)?;
    let failed = |error: postgres::Error| {
        let why = format!("{}: {}", path.display(), with_detail(&error));
        Error::Data { side: side.to_owned(), why }
    };
    if let Some(seed) = seed {
        client.batch_execute(&set_seed(seed)).map_err(failed)?;
    }
    client.batch_execute(&text).map_err(failed)
}

/// Makes `random()` give the same numbers on both sides.
pub(crate) fn set_seed(seed: u64) -> String {
    format!("SELECT setseed({})", (seed % 1_000_000) as f64 / 1e6)
}

/// The conninfo of one of the lab's servers, as the load engine reads it.
fn keyword_form(endpoint: &str) -> String {
    server::keyword_form(endpoint).unwrap_or_else(|_| endpoint.to_owned())
}
