//! Totals of the moves of a command, told while they go on and printed at the end.

use serde_json::{Value, json};
use shard::Event;

use crate::size;
use console::terminal::{self, GOOD, styled};

/// Totals of the moves so far.
#[derive(Default)]
pub(crate) struct MoveTotals {
    pub(crate) batches: usize,
    pub(crate) buckets: usize,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
    pub(crate) longest_fence_ms: f64,
    pub(crate) abandoned: usize,
    pub(crate) kept: usize,
    pub(crate) mended: usize,
    /// Of the batch that moves now.
    batch: String,
    batch_buckets: usize,
    is_waiting: bool,
}

impl MoveTotals {
    /// The same for programs, with the version that the mapping has now.
    pub(crate) fn json(&self, version: i64) -> Value {
        let Self { batches, buckets, rows, bytes, longest_fence_ms, .. } = self;
        json!({
            "version": version,
            "batches": batches,
            "buckets": buckets,
            "rows": rows,
            "bytes": bytes,
            "longest_fence_ms": longest_fence_ms,
            "abandoned": self.abandoned,
            "kept": self.kept,
            "mended": self.mended,
        })
    }

    /// Adds an event up, and tells it.
    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Batch { number, batch } => {
                self.batch_buckets = batch.buckets.len();
                self.batch = format!(
                    "batch {number}: {}, node {} → node {}",
                    terms::counted(batch.buckets.len() as u64, "bucket"),
                    batch.from,
                    batch.to
                );
                terminal::narrate(format_args!("  ▸ {}", self.batch));
            }
            Event::Did { .. } => self.is_waiting = false,
            Event::Lasting { what, .. } => {
                self.is_waiting = false;
                terminal::narrate(format_args!("  … {what}"));
            }
            Event::Mended { what } => {
                self.mended += 1;
                terminal::narrate(format_args!("  … {what}"));
            }
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
                self.longest_fence_ms = self.longest_fence_ms.max(*fence_ms);
                let tick = styled(GOOD, "✓");
                terminal::narrate(format_args!(
                    "  {tick} {}: {}, {}, fenced for {fence_ms:.0} ms",
                    self.batch,
                    terms::counted(rows.unsigned_abs(), "row"),
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
