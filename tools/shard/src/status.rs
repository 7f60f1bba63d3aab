//! `pgrig-shard status`: the nodes of a cluster, their buckets, and moves under way.

use serde_json::{Value, json};
use shard::{NodeStatus, Status};

use crate::arguments::ClusterArguments;
use crate::{complaint, size};
use console::terminal::{self, BAD, FAINT, STRONG, styled};
use console::{CommandComplaint, ProgramExit};

/// Shows a cluster; the exit code says if all of its nodes answer and are where the mapping has them, and if no
/// interrupted move keeps buckets from being served.
pub(crate) fn status(of: &ClusterArguments) -> Result<ProgramExit, CommandComplaint> {
    // It is the proxy that refused: a node that does is a part of the status.
    let refused = |error| complaint(&error).exit(ProgramExit::CouldNotStart);
    let status = Status::of(&of.proxy).map_err(refused)?;
    match of.json {
        true => terminal::json(&json(&status)),
        false => print(&status),
    }
    let is_in_step = status.out_of_step.is_empty()
        && status.remnants.is_empty()
        && !status.is_undecided
        && status.interrupted_without_service().next().is_none();
    match is_in_step && status.nodes.iter().all(|node| node.says.is_ok()) {
        true => Ok(ProgramExit::Done),
        false => Ok(ProgramExit::Incomplete),
    }
}

/// The same for programs.
fn json(status: &Status) -> Value {
    let nodes = status.nodes.iter().map(|node| {
        let says = node.says.as_ref().ok();
        json!({
            "number": node.number,
            "place": node.place,
            "is_leaving": node.is_leaving,
            "mapped": node.mapped,
            "owned": says.map(|says| says.owned),
            "fenced": says.map(|says| says.fenced),
            "arriving": says.map(|says| says.arriving),
            "gone": says.map(|says| says.gone),
            "bytes": says.map(|says| says.bytes),
            "version": says.map(|says| says.version),
            "error": node.says.as_ref().err(),
        })
    });
    let batches = status.batches.iter().map(|batch| {
        json!({
            "number": batch.number,
            "from": batch.from,
            "to": batch.to,
            "buckets": batch.buckets,
            "step": batch.step,
        })
    });
    json!({
        "version": status.version,
        "buckets": status.buckets,
        "nodes": nodes.collect::<Vec<_>>(),
        "batches": batches.collect::<Vec<_>>(),
        "is_busy": status.is_busy,
        "out_of_step": status.out_of_step,
        "remnants": status.remnants,
        "is_undecided": status.is_undecided,
    })
}

fn print(status: &Status) {
    terminal::result(format_args!(
        "mapping version {}, {} on {}",
        status.version,
        terms::counted(status.buckets.unsigned_abs().into(), "bucket"),
        terms::counted(status.nodes.len() as u64, "node")
    ));
    terminal::result(styled(
        STRONG,
        "  node  mapped  owned  fenced  arriving  gone       size  version  host",
    ));
    status.nodes.iter().for_each(print_node);
    for batch in &status.batches {
        terminal::result(format_args!(
            "  batch {}: {}, node {} → node {}, {}",
            batch.number,
            terms::counted(batch.buckets as u64, "bucket"),
            batch.from,
            batch.to,
            batch.step
        ));
    }
    for batch in status.interrupted_without_service() {
        terminal::result(format_args!(
            "  {} batch {} was interrupted while its buckets refuse writes, or all calls",
            styled(BAD, "not served:"),
            batch.number
        ));
    }
    for line in &status.out_of_step {
        terminal::result(format_args!("  {} {line}", styled(BAD, "out of step:")));
    }
    for remnant in &status.remnants {
        terminal::result(format_args!("  {} {remnant}", styled(BAD, "of no move:")));
    }
    terminal::narrate(styled(FAINT, COLUMNS));
    match (status.is_undecided, status.out_of_step.is_empty()) {
        (true, _) => terminal::narrate(
            "it is not certain which server is right: see \"Neither is certain\" and the messages in docs/sharding.md",
        ),
        (false, false) => terminal::narrate("`pgrig-shard rebalance` brings them into step"),
        (false, true) => {}
    }
    if !status.remnants.is_empty() {
        terminal::narrate(
            "a slot of no move keeps WAL for ever; `pgrig-shard rebalance` or `abandon` drops it",
        );
    }
    if !status.batches.is_empty() && !status.is_busy {
        terminal::narrate(
            "no process works on it; `pgrig-shard rebalance` continues it, `pgrig-shard abandon` \
             gives it up",
        );
    }
}

fn print_node(node: &NodeStatus) {
    let mark = if node.is_leaving { ", leaving" } else { "" };
    let NodeStatus { number, place, mapped, .. } = node;
    match &node.says {
        Ok(says) => terminal::result(format_args!(
            "  {number:>4}  {mapped:>6}  {:>5}  {:>6}  {:>8}  {:>4}  {:>9}  {:>7}  {place}{mark}",
            says.owned,
            says.fenced,
            says.arriving,
            says.gone,
            size(says.bytes),
            says.version
        )),
        Err(why) => {
            let why = styled(BAD, why);
            terminal::result(format_args!("  {number:>4}  {mapped:>6}  {place}{mark}: {why}"));
        }
    }
}

/// The columns, below the table.
const COLUMNS: &str = "  mapped: buckets that the proxy sends to the node; owned: that it reads and \
    writes; fenced: that it only reads, because they are about to move; arriving: that are being copied \
    to it; gone: that have left, and whose rows are still there; version: that of its mapping";
