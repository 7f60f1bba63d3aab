//! Two servers that pgrig makes, with the same data.

use std::path::Path;

use import::{Key, Source, Values};
use lab::{Installation, Lab, LabConfig, Node, NodeConfig, Server, Settings, StopMode};
use pgbench::Console;
use pgbench::options::Invocation;
use record::comparison::{DataOrigin, Renewal};

use crate::arena::Servers;
use crate::design::SIDES;
use crate::error::Error;
use crate::request::Request;
use crate::side::{Data, Side, SideKind};
use crate::{room, same, settings};

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
    of_pgrig: &[(String, String)],
    control: &load::Control,
) -> Result<(Servers, DataOrigin), Error> {
    let (mut a, mut b) = (stopped(0, request)?, stopped(1, request)?);
    let settings = [0, 1].map(|side| settings::of_side(of_pgrig, &request.sides[side].settings));
    let memory = lab::machine::Machine::here().memory;
    room::memory(&settings, request.workload.clients, memory)?;
    room::disk(a.node.directory(), &request.data, 2)?;
    fill(&mut a, request, control)?;
    let origin = if can_read(&mut b, &a)? {
        b.node.clone_data(&a.node)?;
        DataOrigin::Copied
    } else {
        fill(&mut b, request, control)?;
        DataOrigin::LoadedTwice
    };
    let [mut a, mut b] = [a, b].map(Draft::side);
    for side in [&mut a, &mut b] {
        node(side).start()?;
    }
    if origin == DataOrigin::LoadedTwice {
        same::check([&a, &b], None)?;
    }
    let [of_a, of_b] = settings;
    finish(&mut a, 0, of_a, request, control)?;
    finish(&mut b, 1, of_b, request, control)?;
    // A script of one side changes its data: then they are no copy of the other's.
    let has_scripts = request.sides.iter().any(|side| side.sql.is_some());
    let renewal = match origin {
        DataOrigin::Copied if !has_scripts => Renewal::Exchanged,
        _ => Renewal::Restarted,
    };
    Ok((Servers::new([a, b], renewal), origin))
}

/// One server with its data, which stands against a server of the user's.
pub(crate) fn one(index: usize, request: &Request, control: &load::Control) -> Result<Side, Error> {
    let mut draft = stopped(index, request)?;
    room::disk(draft.node.directory(), &request.data, 1)?;
    fill(&mut draft, request, control)?;
    let mut side = draft.side();
    node(&mut side).start()?;
    Ok(side)
}

/// Runs the side's own script, and starts the server with its settings.
pub(crate) fn finish(
    side: &mut Side,
    index: usize,
    settings: Settings,
    request: &Request,
    control: &load::Control,
) -> Result<(), Error> {
    if let Some(script) = &request.sides[index].sql {
        let name = side.name;
        import(node(side), name, script, None, request, control)?;
    }
    let node = node(side);
    node.stop(StopMode::Fast)?;
    node.configure(settings)?;
    Ok(node.start()?)
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
    let mut config = LabConfig::new(installation);
    if let Some(cache) = &request.common.cache {
        config.password = Some(cache.password().map_err(imported(SIDES[index]))?);
    }
    let lab = Lab::open(config)?;
    let node = lab.node(SIDES[index], NodeConfig::new(Settings::new()))?;
    Ok(Draft { name: SIDES[index], node, lab })
}

/// Makes a side's data, or takes those that were kept.
fn fill(side: &mut Draft, request: &Request, control: &load::Control) -> Result<(), Error> {
    let failed = imported(side.name);
    let key = match &request.common.cache {
        Some(cache) => Some((cache, key(side.node.installation(), request).map_err(&failed)?)),
        None => None,
    };
    if let Some((cache, key)) = &key
        && cache.take(key, &mut side.node).map_err(&failed)?
    {
        return room::copy(side.node.directory(), side.node.data_bytes()?);
    }
    let settings = [("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")];
    side.node.init()?;
    // Nothing is lost if the machine dies while data are loaded.
    side.node.configure(settings.into_iter().collect())?;
    side.node.start()?;
    match &request.data {
        Data::File(path) => {
            import(&side.node, side.name, path, Some(seed(request)), request, control)?;
        }
        Data::Pgbench(scale) => {
            let conninfo = keyword_form(&side.node.endpoint().to_string());
            pgbench_tables(side.name, &conninfo, *scale, None, control)?;
        }
    }
    let bytes = side.node.value("SELECT sum(pg_database_size(oid)) FROM pg_database")?;
    side.node.stop(StopMode::Fast)?;
    if let Some((cache, key)) = &key {
        cache.keep(key, &side.node).map_err(&failed)?;
    }
    room::copy(side.node.directory(), bytes.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// The key of a side's data, which stands for everything that they are made from.
fn key(installation: &Installation, request: &Request) -> Result<Key, import::Error> {
    let mut key = Key::new(installation);
    match &request.data {
        Data::Pgbench(scale) => key.add(&format!("pgbench {scale}")),
        Data::File(path) => {
            key.add(&format!("file, analyzed: {}", request.common.analyzes));
            key.add_source(&Source::look(path)?)?;
        }
    }
    Ok(key)
}

/// The seed of `random()` in a script of data. With a cache it is one for all, so that the data of two
/// versions are the same although they were built at different times.
pub(crate) fn seed(request: &Request) -> f64 {
    let seed = if request.common.cache.is_some() { 0 } else { request.common.seed };
    (seed % 1_000_000) as f64 / 1e6
}

/// Has psql or pg_restore load a file, and gives the planner its statistics.
fn import(
    node: &Node,
    side: &'static str,
    path: &Path,
    seed: Option<f64>,
    request: &Request,
    control: &load::Control,
) -> Result<(), Error> {
    let values = Values { variables: &[], seed };
    let is_interrupted = || control.urgency() != load::Urgency::None;
    let loaded = Source::look(path).and_then(|source| source.load(node, values, &is_interrupted));
    match loaded {
        Err(import::Error::Interrupted) => {
            return Err(Error::Interrupted { doing: "loading the data" });
        }
        loaded => loaded.map_err(imported(side))?,
    }
    if request.common.analyzes {
        let vacuum = "VACUUM (ANALYZE)";
        let ran = node.connect()?.heard_by(control, |client| client.batch_execute(vacuum));
        ran.map_err(|source| Error::failed(side, vacuum, source))?;
    }
    Ok(())
}

fn imported(side: &'static str) -> impl Fn(import::Error) -> Error {
    move |source| Error::Import { side: Some(side.to_owned()), source: Box::new(source) }
}

/// True if B's programs can read the files of A, which is stopped: those that they make themselves have
/// the same format.
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

/// Makes `random()` give the same numbers on both sides.
pub(crate) fn set_seed(seed: f64) -> String {
    format!("SELECT setseed({seed})")
}

/// The conninfo of one of the lab's servers, as the load engine reads it.
fn keyword_form(endpoint: &str) -> String {
    server::keyword_form(endpoint).unwrap_or_else(|_| endpoint.to_owned())
}
