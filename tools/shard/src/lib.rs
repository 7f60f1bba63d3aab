//! pgrig-shard: a PL/Proxy cluster's nodes come and go under load.
//!
//! The room `shard` knows the cluster and moves its buckets; this package is its program. `pgrig shard` runs the same.

mod arguments;
mod moved;
mod status;

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use console::terminal::{self, FAINT, styled};
use console::{CommandComplaint, ProgramExit};
use serde_json::json;
use server::StopUrgency;
use shard::{Batch, Cluster, Error, Event, Moves, NodeChange, NodeConfig, Options};

pub use crate::arguments::ShardArguments;
use crate::arguments::{ClusterArguments, MoveArguments, ShardCommand};
use crate::moved::MoveTotals;

/// The command line of the program.
pub fn command() -> clap::Command {
    let command = clap::Command::new("pgrig-shard")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
        .disable_help_subcommand(true);
    // After the arguments, which bring a description of their own.
    ShardArguments::augment_args(command)
        .about("Adds and removes nodes of a PL/Proxy cluster while clients use it")
}

/// Does what was asked of a cluster.
///
/// # Errors
/// If it cannot be done, or is interrupted.
pub fn shard(arguments: &ShardArguments) -> Result<ProgramExit, CommandComplaint> {
    obey(arguments).map_err(CommandComplaint::from)
}

fn obey(arguments: &ShardArguments) -> Result<ProgramExit, ClusterFailure> {
    match &arguments.command {
        ShardCommand::Create { of, nodes, routes, template, key, buckets } => {
            let template = read(
                template,
                "template",
                "it is the SQL of one bucket, with {bucket} for its schema",
            )?;
            create(of, nodes, routes, &template, key, *buckets)
        }
        ShardCommand::Add { node, route, moves } => {
            let node = NodeConfig { conninfo: node.clone(), route: route.clone() };
            if moves.dry_run {
                let mut cluster = Cluster::look(&moves.of.proxy)?;
                cluster.check_new(&node)?;
                check_room(&mut cluster, moves, NodeChange::Add, Some(&node))?;
                return dry_run(&mut cluster, moves, NodeChange::Add);
            }
            let mut cluster = Cluster::open_to_add(&moves.of.proxy, &node)?;
            if !cluster.nodes().iter().any(|known| known.conninfo == node.conninfo) {
                cluster.check_new(&node)?;
                check_room(&mut cluster, moves, NodeChange::Add, Some(&node))?;
            }
            let number = cluster.add(&node)?;
            terminal::narrate(format_args!("  node {number} is in the cluster"));
            run(&mut cluster, moves)
        }
        ShardCommand::Remove { number, moves } => {
            if moves.dry_run {
                let mut cluster = Cluster::look(&moves.of.proxy)?;
                cluster.check_removable(*number)?;
                check_room(&mut cluster, moves, NodeChange::Remove(*number), None)?;
                return dry_run(&mut cluster, moves, NodeChange::Remove(*number));
            }
            let mut cluster = Cluster::open(&moves.of.proxy)?;
            cluster.check_removable(*number)?;
            check_room(&mut cluster, moves, NodeChange::Remove(*number), None)?;
            cluster.remove(*number)?;
            run(&mut cluster, moves)
        }
        ShardCommand::Rebalance { moves } => {
            if moves.dry_run {
                return dry_run(&mut Cluster::look(&moves.of.proxy)?, moves, NodeChange::None);
            }
            let mut cluster = Cluster::open(&moves.of.proxy)?;
            check_room(&mut cluster, moves, NodeChange::None, None)?;
            run(&mut cluster, moves)
        }
        ShardCommand::Abandon { of } => abandon(of),
        ShardCommand::Status { of } => Ok(status::status(of)?),
    }
}

fn read(file: &Path, what: &str, hint: &str) -> Result<String, ClusterFailure> {
    fs::read_to_string(file).map_err(|error| {
        let what = format!("reading the {what} {}: {error}", file.display());
        ClusterFailure::from(CommandComplaint::new(what).hinted(Some(hint)))
    })
}

fn create(
    of: &ClusterArguments,
    nodes: &[String],
    routes: &[String],
    template: &str,
    key: &str,
    buckets: i32,
) -> Result<ProgramExit, ClusterFailure> {
    if !routes.is_empty() && routes.len() != nodes.len() {
        let what = format!("{} nodes, {} routes to them", nodes.len(), routes.len());
        let hint = "give every --node its --route, or none";
        return Err(CommandComplaint::new(what).hinted(Some(hint)).into());
    }
    let mut routes = routes.iter();
    let nodes: Vec<NodeConfig> = nodes
        .iter()
        .map(|node| NodeConfig { conninfo: node.clone(), route: routes.next().cloned() })
        .collect();
    let cluster = Cluster::create(&of.proxy, &nodes, buckets, template, key)?;
    let names: Vec<&str> = cluster.functions().iter().map(|one| one.name.as_str()).collect();
    let (buckets, nodes) = (cluster.owners().len(), cluster.nodes().len());
    if of.json {
        terminal::json(&json!({ "buckets": buckets, "nodes": nodes, "functions": names }));
        return Ok(ProgramExit::Done);
    }
    let names = names.join(", ");
    terminal::result(format_args!("{buckets} buckets on {nodes} nodes; the proxy offers {names}"));
    terminal::narrate(styled(
        FAINT,
        "  made: schema pgrig_shard on all of them, one schema for each bucket and the functions \
         in schema public; on the proxy extension plproxy, server pgrig_shard, a user mapping for \
         PUBLIC. Other roles need USAGE on that server and on schema pgrig_shard.",
    ));
    Ok(ProgramExit::Done)
}

/// Has moves done, told and added up.
fn moved(
    cluster: &mut Cluster,
    options: &Options,
    act: impl FnOnce(&mut Moves<'_>) -> Result<(), Error>,
) -> Result<MoveTotals, ClusterFailure> {
    let control = console::interrupted(|| {});
    cluster.hear(&control);
    let is_stopped = || control.urgency() != StopUrgency::None;
    let mut moved = MoveTotals::default();
    let mut tell = |event: &Event<'_>| moved.hear(event);
    act(&mut Moves::new(cluster, options.clone(), &mut tell, &is_stopped))?;
    Ok(moved)
}

/// Prints the totals for programs, or has them told to people.
fn conclude(as_json: bool, moved: &MoveTotals, version: i64, tell: impl FnOnce()) {
    match as_json {
        true => terminal::json(&moved.json(version)),
        false => tell(),
    }
}

/// Leaves the buckets of interrupted moves where they are.
fn abandon(of: &ClusterArguments) -> Result<ProgramExit, ClusterFailure> {
    let mut cluster = Cluster::open(&of.proxy)?;
    let moved = moved(&mut cluster, &Options::default(), |moves| moves.abandon())?;
    conclude(of.json, &moved, cluster.version(), || match (moved.abandoned, moved.kept) {
        (0, 0) => terminal::result("no move was under way"),
        (abandoned, 0) => terminal::result(format_args!("{} abandoned", batches(abandoned))),
        (abandoned, kept) => terminal::result(format_args!(
            "{} abandoned; {kept} can only be completed: `pgrig-shard rebalance`",
            batches(abandoned)
        )),
    });
    Ok(if moved.kept > 0 { ProgramExit::Incomplete } else { ProgramExit::Done })
}

fn dry_run(
    cluster: &mut Cluster,
    moves: &MoveArguments,
    change: NodeChange,
) -> Result<ProgramExit, ClusterFailure> {
    // A plan from a mapping that the servers contradict would be wrong.
    cluster.check_in_step()?;
    let (begun, new) = cluster.planned(&options(moves), change)?;
    let total = cluster.owners().len();
    if moves.of.json {
        let rows = |batches: &[Batch]| {
            let row =
                |one: &Batch| json!({ "from": one.from, "to": one.to, "buckets": one.buckets });
            batches.iter().map(row).collect::<Vec<_>>()
        };
        terminal::json(&json!({ "buckets": total, "begun": rows(&begun), "planned": rows(&new) }));
        return Ok(ProgramExit::Done);
    }
    if !begun.is_empty() {
        terminal::result(format_args!("under way: {}", summary(&begun, total)));
        list(&begun);
    }
    match new.is_empty() {
        true => terminal::result("nothing has to move"),
        false => terminal::result(format_args!("plan: {}", summary(&new, total))),
    }
    list(&new);
    if !begun.is_empty() || !new.is_empty() {
        terminal::narrate(styled(FAINT, NOT_CARRIED));
    }
    terminal::narrate(styled(FAINT, "  dry run: nothing was changed"));
    Ok(ProgramExit::Done)
}

/// Nothing begins that would fill a node's disk.
fn check_room(
    cluster: &mut Cluster,
    moves: &MoveArguments,
    change: NodeChange,
    new: Option<&NodeConfig>,
) -> Result<(), ClusterFailure> {
    if change != NodeChange::None {
        cluster.check_movable(&options(moves), change)?;
    }
    let silent = match cluster.check_room(&options(moves), change, new) {
        // What goes on after a crash waits for nodes that are on their way back.
        Err(why @ Error::Connect { .. }) if change == NodeChange::None => {
            terminal::narrate(format_args!("  how full disks are is not known: {why}"));
            return Ok(());
        }
        silent => silent?,
    };
    for number in silent {
        terminal::narrate(format_args!("  node {number} does not say how full its disk is"));
    }
    Ok(())
}

fn summary(batches: &[Batch], total: usize) -> String {
    let moved: usize = batches.iter().map(|batch| batch.buckets.len()).sum();
    format!("{moved} of {total} buckets, {}", self::batches(batches.len()))
}

fn batches(count: usize) -> String {
    format!("{count} {}", if count == 1 { "batch" } else { "batches" })
}

fn list(batches: &[Batch]) {
    for batch in batches {
        let buckets: Vec<String> = batch.buckets.iter().map(i32::to_string).collect();
        terminal::result(format_args!(
            "  node {} → node {}   {}",
            batch.from,
            batch.to,
            buckets.join(" ")
        ));
    }
}

fn run(cluster: &mut Cluster, moves: &MoveArguments) -> Result<ProgramExit, ClusterFailure> {
    let options = options(moves);
    let (begun, new) = cluster.planned(&options, NodeChange::None)?;
    if !begun.is_empty() || !new.is_empty() {
        terminal::narrate(styled(FAINT, NOT_CARRIED));
    }
    let moved = moved(cluster, &options, |moves| moves.run())?;
    let version = cluster.version();
    conclude(moves.of.json, &moved, version, || match moved.batches {
        0 => {
            terminal::result(format_args!("nothing had to move; mapping version {version}"));
        }
        batches => terminal::result(format_args!(
            "{} buckets, {} rows, {} moved in {batches} batches; longest fence {:.0} ms; \
                 mapping version {version}",
            moved.buckets,
            moved.rows,
            size(moved.bytes),
            moved.longest_fence_ms,
        )),
    });
    Ok(ProgramExit::Done)
}

fn options(moves: &MoveArguments) -> Options {
    Options {
        batch_max: moves.batch,
        grace: Duration::from_secs(moves.grace),
        fence_max: Duration::from_secs(moves.fence_max),
        keep_free_bytes: i64::from(moves.keep_free) << 20,
        ..Options::default()
    }
}

/// Limits of every move, which are told before one begins. What a check can find is refused instead.
const NOT_CARRIED: &str = "  a move carries the rows of the buckets' tables, and nothing else: no DDL \
    (run none until it ends), no large objects, no advisory locks, no statistics (run ANALYZE on the \
    target)";

/// A number of bytes that is never negative.
fn size(bytes: i64) -> String {
    terms::size(bytes.max(0).unsigned_abs())
}

/// The reason why a command ended early.
enum ClusterFailure {
    /// The cluster refused or could not do it.
    Cluster(Error),
    /// The command has said it itself.
    Command(CommandComplaint),
}

impl From<Error> for ClusterFailure {
    fn from(error: Error) -> ClusterFailure {
        ClusterFailure::Cluster(error)
    }
}

impl From<CommandComplaint> for ClusterFailure {
    fn from(complaint: CommandComplaint) -> ClusterFailure {
        ClusterFailure::Command(complaint)
    }
}

impl From<ClusterFailure> for CommandComplaint {
    fn from(failure: ClusterFailure) -> CommandComplaint {
        match failure {
            ClusterFailure::Cluster(error) => complaint(&error),
            ClusterFailure::Command(complaint) => complaint,
        }
    }
}

/// The complaint about an error, with the exit code of its kind.
fn complaint(error: &Error) -> CommandComplaint {
    let exit = match error {
        Error::MissingPart { .. } => ProgramExit::DoesNotFit,
        Error::Stopped => ProgramExit::Interrupted,
        Error::Statement { .. }
        | Error::Copy { .. }
        | Error::GivenUp { .. }
        | Error::SlotInUse { .. }
        | Error::Fence { .. }
        | Error::Differs { .. } => ProgramExit::Incomplete,
        _ => ProgramExit::CouldNotStart,
    };
    CommandComplaint::new(error).hinted(error.hint()).exit(exit)
}
