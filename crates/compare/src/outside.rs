//! Two servers of the user's. pgrig changes no setting there; what it makes lies in a schema of its
//! own, which is marked and goes with it.

use std::sync::Mutex;

use lab::guest::{self, Outlet, OwnSchema};
use lab::{Server, TARGET_SCHEMA, Target, TargetConfig};
use record::comparison::{DataOrigin, Renewal};
use script::{CommandKind, Names, Script, Syntax, Variables};
use server::Limits;

use crate::arena::Servers;
use crate::build::{self, pgbench_tables, set_seed};
use crate::contest::Ground;
use crate::design::SIDES;
use crate::error::Error;
use crate::request::Request;
use crate::side::{Data, Side, SideKind, read};
use crate::{same, settings};

/// Connects to both servers, and makes the same data on both unless the data are there.
pub(crate) fn open(
    request: &Request,
    control: &load::Control,
) -> Result<(Servers, DataOrigin), Error> {
    let (mut a, mut b) = (connect(request, 0, control)?, connect(request, 1, control)?);
    let is_one = identity(&a)? == identity(&b)?;
    if request.no_init {
        // One server that is reached in two ways, directly and through a pooler, is a difference.
        let differs = a.session != b.session || a.conninfo != b.conninfo;
        if is_one && !request.common.is_self && !differs {
            return Err(Error::SameSides);
        }
        if !is_one {
            same::check([&a, &b], None)?;
        }
        let renewal = if is_one { Renewal::Shared } else { Renewal::Kept };
        return Ok((Servers::new([a, b], renewal), DataOrigin::Found));
    }
    if is_one {
        return Err(Error::SameDatabase);
    }
    for side in [&mut a, &mut b] {
        make(side, request, control)?;
    }
    same::check([&a, &b], Some([TARGET_SCHEMA; 2]))?;
    for (side, options) in [&a, &b].into_iter().zip(&request.sides) {
        if let Some(path) = &options.sql {
            run_script(side, path, None)?;
            analyze(side, request)?;
        }
    }
    Ok((Servers::new([a, b], Renewal::Kept), DataOrigin::LoadedTwice))
}

/// Connects to the one server of the user's, and makes the other one.
pub(crate) fn mixed(
    request: &Request,
    of_pgrig: &[(String, String)],
    control: &load::Control,
) -> Result<(Servers, DataOrigin), Error> {
    let theirs = usize::from(request.sides[0].conninfo.is_none());
    let ours = 1 - theirs;
    let mut guest = connect(request, theirs, control)?;
    let mut own = build::one(ours, request, control)?;
    if !request.no_init {
        make(&mut guest, request, control)?;
    }
    let sides = |mine, its| if ours == 0 { [mine, its] } else { [its, mine] };
    let schemas = (!request.no_init).then_some(sides("public", TARGET_SCHEMA));
    let [a, b] = if ours == 0 { [&own, &guest] } else { [&guest, &own] };
    same::check([a, b], schemas)?;
    if let Some(path) = &request.sides[theirs].sql {
        run_script(&guest, path, None)?;
        analyze(&guest, request)?;
    }
    let settings = settings::of_side(of_pgrig, &request.sides[ours].settings);
    build::finish(&mut own, ours, settings, request, control)?;
    let sides = if ours == 0 { [own, guest] } else { [guest, own] };
    let origin = if request.no_init { DataOrigin::Found } else { DataOrigin::LoadedTwice };
    Ok((Servers::new(sides, Renewal::Kept), origin))
}

/// Gives the planner statistics of the rig's own tables.
fn analyze(side: &Side, request: &Request) -> Result<(), Error> {
    if !request.common.analyzes {
        return Ok(());
    }
    let mut client = side.connect()?;
    ["VACUUM", "ANALYZE"].iter().try_for_each(|statement| {
        guest::send(statement, &mut Outlet::Server(&mut client))
            .map_err(|why| Error::Data { side: side.name.to_owned(), why })
    })
}

fn connect(request: &Request, index: usize, control: &load::Control) -> Result<Side, Error> {
    let (side, options) = (SIDES[index], &request.sides[index]);
    let conninfo = options.conninfo.as_deref().unwrap_or_default();
    let resolved =
        server::resolve_conninfo(conninfo).map_err(|source| Error::Conninfo { side, source })?;
    let failed = |source| Error::Server { side: side.to_owned(), source };
    let conninfo = resolved.to_keyword_string();
    let limits = Limits::of_administration().heard_by(control);
    let config = TargetConfig { conninfo: resolved, limits };
    let target = Target::open(config).map_err(failed)?;
    let version = target.version().split_whitespace().next().unwrap_or_default().to_owned();
    Ok(Side {
        name: side,
        version,
        server: Server::Target(Box::new(target)),
        conninfo,
        session: options.settings.clone(),
        kind: SideKind::Guest,
    })
}

/// The identity of a side's server and database.
fn identity(side: &Side) -> Result<String, Error> {
    let mut client = side.connect()?;
    let row = client.query_one(IDENTITY, &[]).map_err(|source| side.failed(IDENTITY, source))?;
    Ok(row.get(0))
}

/// Two servers do not start in the same microsecond.
const IDENTITY: &str = "SELECT pg_postmaster_start_time()::text || ' ' || \
    (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Makes the data of a side in a schema of its own.
fn make(side: &mut Side, request: &Request, control: &load::Control) -> Result<(), Error> {
    let Server::Target(target) = &side.server else { return Ok(()) };
    let run = format!("compare-{}", std::process::id());
    let schema = OwnSchema::make(target, &run)
        .map_err(|source| Error::Server { side: side.name.to_owned(), source })?;
    side.kind = SideKind::Schema { _own: Mutex::new(Box::new(schema)) };
    side.session.retain(|(name, _)| !name.eq_ignore_ascii_case("search_path"));
    side.session.push(("search_path".to_owned(), TARGET_SCHEMA.to_owned()));
    match &request.data {
        Data::Pgbench(scale) => {
            pgbench_tables(side.name, &side.conninfo, *scale, Some(TARGET_SCHEMA), control)
        }
        Data::File(path) => {
            run_script(side, path, Some(build::seed(request)))?;
            analyze(side, request)
        }
    }
}

/// Runs a script command by command, as far as each keeps to pgrig's schema.
fn run_script(side: &Side, path: &std::path::Path, seed: Option<f64>) -> Result<(), Error> {
    let text = read(path)?;
    let name = path.display().to_string();
    let refused = |why: String| Error::Data { side: side.name.to_owned(), why };
    let mut names = Names::default();
    let script = Script::parse(&name, &text, Syntax::Current, &mut names)
        .map_err(|error| refused(error.to_string()))?;
    let variables = Variables::new(&names);
    let mut client = side.connect()?;
    if let Some(seed) = seed {
        side.run(&mut client, &set_seed(seed))?;
    }
    for command in &script.commands {
        let CommandKind::Sql { template, .. } = &command.kind else {
            let (line, word) = (command.line, command.kind.word());
            let why = format!("{name}:{line}: \\{word} has no place in a script of data");
            return Err(refused(why));
        };
        let mut sql = Vec::new();
        template.write_simple(&variables, &mut sql);
        guest::send(&String::from_utf8_lossy(&sql), &mut Outlet::Server(&mut client))
            .map_err(|why| refused(format!("{name}:{}: {why}", command.line)))?;
    }
    Ok(())
}
