//! `pgrig shard`: a PL/Proxy cluster's nodes come and go under load.

mod status;

use std::fs;
use std::path::Path;
use std::time::Duration;

use load::Urgency;
use serde_json::json;
use shard::{Batch, Change, Cluster, Error, Event, Moves, NodeConfig, Options};

use crate::arguments::{MoveArguments, ShardArguments, ShardCommand};
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::signals;
use crate::terminal::{self, FAINT, GOOD, styled};

/// Does what was asked of a cluster.
pub(crate) fn shard(arguments: &ShardArguments) -> Result<Exit, Complaint> {
    match &arguments.command {
        ShardCommand::Create { proxy, nodes, routes, template, buckets } => {
            let template = read(
                template,
                "template",
                "it is the SQL of one bucket, with {bucket} for its schema",
            )?;
            create(proxy, nodes, routes, &template, *buckets)
        }
        ShardCommand::Reference { sql, proxy } => {
            let hint = "it is the SQL of the tables, with {reference} for their schema";
            let sql = read(sql, "SQL of the reference tables", hint)?;
            let control = signals::control();
            let is_stopped = || control.urgency() != Urgency::None;
            let names = Cluster::open(proxy)?.refer(&sql, &is_stopped)?;
            terminal::result(format_args!(
                "every node has the tables; the proxy offers {}",
                if names.is_empty() { "no function of them".to_owned() } else { names.join(", ") }
            ));
            Ok(Exit::Done)
        }
        ShardCommand::Add { node, route, moves } => {
            let node = NodeConfig { conninfo: node.clone(), route: route.clone() };
            if moves.dry_run {
                let mut cluster = Cluster::look(&moves.proxy)?;
                cluster.check_new(&node)?;
                check_room(&mut cluster, moves, Change::Add, Some(&node))?;
                return dry_run(&mut cluster, moves, Change::Add);
            }
            let mut cluster = Cluster::open(&moves.proxy)?;
            if !cluster.nodes().iter().any(|known| known.conninfo == node.conninfo) {
                cluster.check_new(&node)?;
                check_room(&mut cluster, moves, Change::Add, Some(&node))?;
            }
            let control = signals::control();
            let is_stopped = || control.urgency() != Urgency::None;
            let number = cluster.add_unless(&node, &is_stopped)?;
            terminal::narrate(format_args!("  node {number} is in the cluster"));
            run(&mut cluster, moves)
        }
        ShardCommand::Remove { number, moves } => {
            if moves.dry_run {
                let mut cluster = Cluster::look(&moves.proxy)?;
                cluster.check_removable(*number)?;
                check_room(&mut cluster, moves, Change::Remove(*number), None)?;
                return dry_run(&mut cluster, moves, Change::Remove(*number));
            }
            let mut cluster = Cluster::open(&moves.proxy)?;
            cluster.check_removable(*number)?;
            check_room(&mut cluster, moves, Change::Remove(*number), None)?;
            cluster.remove(*number)?;
            run(&mut cluster, moves)
        }
        ShardCommand::Rebalance { moves } => {
            if moves.dry_run {
                return dry_run(&mut Cluster::look(&moves.proxy)?, moves, Change::None);
            }
            let mut cluster = Cluster::open(&moves.proxy)?;
            check_room(&mut cluster, moves, Change::None, None)?;
            run(&mut cluster, moves)
        }
        ShardCommand::Confirm { proxy } => confirm(&mut Cluster::open(proxy)?),
        ShardCommand::Rollback { proxy, grace, fence_max } => {
            let [grace, fence_max] = [grace, fence_max].map(|s| Duration::from_secs(*s));
            rollback(&mut Cluster::open(proxy)?, Options { grace, fence_max, ..Options::default() })
        }
        ShardCommand::Abandon { proxy } => abandon(&mut Cluster::open(proxy)?),
        ShardCommand::Status { proxy, json } => status::status(proxy, *json),
    }
}

fn read(file: &Path, what: &str, hint: &str) -> Result<String, Complaint> {
    fs::read_to_string(file).map_err(|error| {
        Complaint::new(format!("reading the {what} {}: {error}", file.display())).hinted(Some(hint))
    })
}

fn create(
    proxy: &str,
    nodes: &[String],
    routes: &[String],
    template: &str,
    buckets: i32,
) -> Result<Exit, Complaint> {
    if !routes.is_empty() && routes.len() != nodes.len() {
        let what = format!("{} nodes, {} routes to them", nodes.len(), routes.len());
        return Err(Complaint::new(what).hinted(Some("give every --node its --route, or none")));
    }
    let mut routes = routes.iter();
    let nodes: Vec<NodeConfig> = nodes
        .iter()
        .map(|node| NodeConfig { conninfo: node.clone(), route: routes.next().cloned() })
        .collect();
    let cluster = Cluster::create(proxy, &nodes, buckets, template)?;
    let names = cluster.functions().iter().map(|function| function.name.as_str());
    terminal::result(format_args!(
        "{} buckets on {} nodes; the proxy offers {}",
        cluster.owners().len(),
        cluster.nodes().len(),
        names.collect::<Vec<_>>().join(", ")
    ));
    terminal::narrate(styled(
        FAINT,
        "  made: schema pgrig_shard on all of them, one schema for each bucket and the functions \
         in schema public; on the proxy extension plproxy, server pgrig_shard, a user mapping for \
         PUBLIC. Other roles need USAGE on that server and on schema pgrig_shard.",
    ));
    Ok(Exit::Done)
}

/// Closes the way back of the moves that are held.
fn confirm(cluster: &mut Cluster) -> Result<Exit, Complaint> {
    let control = signals::control();
    let is_stopped = || control.urgency() != Urgency::None;
    let mut moved = Moved::default();
    let mut tell = |event: &Event<'_>| moved.hear(event);
    Moves::new(cluster, Options::default(), &mut tell, &is_stopped).confirm()?;
    match moved.confirmed {
        0 => terminal::result("no move was held"),
        count => terminal::result(format_args!("{} confirmed", batches(count))),
    }
    Ok(Exit::Done)
}

/// Returns the buckets of the moves that are held.
fn rollback(cluster: &mut Cluster, options: Options) -> Result<Exit, Complaint> {
    let control = signals::control();
    let is_stopped = || control.urgency() != Urgency::None;
    let mut moved = Moved::default();
    let mut tell = |event: &Event<'_>| moved.hear(event);
    Moves::new(cluster, options, &mut tell, &is_stopped).rollback()?;
    match (moved.batches, moved.abandoned) {
        (0, 0) => terminal::result("no move was held"),
        (returned, abandoned) => terminal::result(format_args!(
            "{} returned, {abandoned} abandoned; longest fence {:.0} ms; mapping version {}",
            batches(returned),
            moved.fence_ms_max,
            cluster.version()
        )),
    }
    if moved.kept > 0 {
        terminal::result(format_args!("{} cannot return: confirmed before", batches(moved.kept)));
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::Done)
}

/// Leaves the buckets of interrupted moves where they are.
fn abandon(cluster: &mut Cluster) -> Result<Exit, Complaint> {
    let control = signals::control();
    let is_stopped = || control.urgency() != Urgency::None;
    let mut moved = Moved::default();
    let mut tell = |event: &Event<'_>| moved.hear(event);
    Moves::new(cluster, Options::default(), &mut tell, &is_stopped).abandon()?;
    match (moved.abandoned, moved.kept) {
        (0, 0) => terminal::result("no move was under way"),
        (abandoned, 0) => terminal::result(format_args!("{} abandoned", batches(abandoned))),
        (abandoned, kept) => {
            terminal::result(format_args!(
                "{} abandoned; {kept} can only be completed: `pgrig shard rebalance`",
                batches(abandoned)
            ));
            return Ok(Exit::Incomplete);
        }
    }
    Ok(Exit::Done)
}

fn dry_run(
    cluster: &mut Cluster,
    moves: &MoveArguments,
    change: Change,
) -> Result<Exit, Complaint> {
    let (begun, new) = cluster.planned(&options(moves), change)?;
    let total = cluster.owners().len();
    if moves.json {
        let rows = |batches: &[Batch]| {
            let row =
                |one: &Batch| json!({ "from": one.from, "to": one.to, "buckets": one.buckets });
            batches.iter().map(row).collect::<Vec<_>>()
        };
        terminal::json(&json!({ "buckets": total, "begun": rows(&begun), "planned": rows(&new) }));
        return Ok(Exit::Done);
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
    Ok(Exit::Done)
}

/// Nothing begins that would fill a node's disk.
fn check_room(
    cluster: &mut Cluster,
    moves: &MoveArguments,
    change: Change,
    new: Option<&NodeConfig>,
) -> Result<(), Complaint> {
    if change != Change::None {
        cluster.check_movable(&options(moves), change)?;
    }
    let silent = match cluster.check_room(&options(moves), change, new) {
        // What goes on after a crash waits for nodes that are on their way back.
        Err(why @ Error::Connect { .. }) if change == Change::None => {
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

fn run(cluster: &mut Cluster, moves: &MoveArguments) -> Result<Exit, Complaint> {
    let control = signals::control();
    let is_stopped = || control.urgency() != Urgency::None;
    let (begun, new) = cluster.planned(&options(moves), Change::None)?;
    if !begun.is_empty() || !new.is_empty() {
        terminal::narrate(styled(FAINT, NOT_CARRIED));
    }
    let mut moved = Moved::default();
    let mut tell = |event: &Event<'_>| moved.hear(event);
    Moves::new(cluster, options(moves), &mut tell, &is_stopped).run()?;
    let version = cluster.version();
    match moved.batches {
        0 => terminal::result(format_args!("nothing had to move; mapping version {version}")),
        batches => terminal::result(format_args!(
            "{} buckets, {} rows, {} moved in {batches} batches; longest fence {:.0} ms; \
             mapping version {version}",
            moved.buckets,
            moved.rows,
            size(moved.bytes),
            moved.fence_ms_max,
        )),
    }
    if moved.held > 0 {
        terminal::result(format_args!(
            "{} held: `pgrig shard confirm` makes the move final, `pgrig shard rollback` undoes it",
            batches(moved.held)
        ));
    }
    Ok(Exit::Done)
}

/// Totals of the moves so far.
#[derive(Default)]
struct Moved {
    batches: usize,
    buckets: usize,
    rows: i64,
    bytes: i64,
    fence_ms_max: f64,
    abandoned: usize,
    kept: usize,
    held: usize,
    confirmed: usize,
    /// Of the batch that moves now.
    batch: String,
    batch_buckets: usize,
    is_waiting: bool,
}

impl Moved {
    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Batch { number, batch } => {
                self.batch_buckets = batch.buckets.len();
                self.batch = format!(
                    "batch {number}: {} buckets, node {} → node {}",
                    batch.buckets.len(),
                    batch.from,
                    batch.to
                );
                terminal::narrate(format_args!("  ▸ {}", self.batch));
            }
            Event::Did { .. } => self.is_waiting = false,
            Event::Held { .. } => self.held += 1,
            Event::Confirmed { .. } => self.confirmed += 1,
            Event::Lasting { what, .. } => terminal::narrate(format_args!("  … {what}")),
            Event::Anew { number, why } => {
                terminal::narrate(format_args!("  … batch {number} begins anew: {why}"));
            }
            Event::Abandoned { number, batch } => {
                self.abandoned += 1;
                terminal::narrate(format_args!(
                    "  batch {number} is abandoned: {} buckets stay on node {}",
                    batch.buckets.len(),
                    batch.from
                ));
            }
            Event::Kept { number } => {
                self.kept += 1;
                terminal::narrate(format_args!(
                    "  batch {number} has gone too far: its target may serve it already"
                ));
            }
            Event::Switched { rows, bytes, fence_ms, .. } => {
                self.batches += 1;
                self.buckets += self.batch_buckets;
                (self.rows, self.bytes) = (self.rows + rows, self.bytes + bytes);
                self.fence_ms_max = self.fence_ms_max.max(*fence_ms);
                let tick = styled(GOOD, "✓");
                terminal::narrate(format_args!(
                    "  {tick} {}: {rows} rows, {}, fenced for {fence_ms:.0} ms",
                    self.batch,
                    size(*bytes)
                ));
            }
            Event::Waiting { why } if !self.is_waiting => {
                self.is_waiting = true;
                terminal::narrate(format_args!("  … {why}; trying again"));
            }
            Event::Waiting { .. } => {}
            Event::Left { number } => {
                terminal::narrate(format_args!("  node {number} has left the cluster"));
            }
        }
    }
}

fn options(moves: &MoveArguments) -> Options {
    Options {
        batch_max: moves.batch,
        grace: Duration::from_secs(moves.grace),
        fence_max: Duration::from_secs(moves.fence_max),
        keep_free_bytes: i64::from(moves.keep_free) << 20,
        hold: moves.hold,
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

impl From<Error> for Complaint {
    fn from(error: Error) -> Complaint {
        let exit = match error {
            Error::MissingPart { .. } => Exit::DoesNotFit,
            Error::Stopped => Exit::Interrupted,
            Error::Statement { .. }
            | Error::Copy { .. }
            | Error::GivenUp { .. }
            | Error::SlotInUse { .. }
            | Error::Fence { .. }
            | Error::Differs { .. } => Exit::Incomplete,
            _ => Exit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}
