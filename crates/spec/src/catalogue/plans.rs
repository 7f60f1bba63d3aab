//! What EXPLAIN says of a query after a trial.

use super::Better::{Lower, Neither};
use super::Kind::Total;
use super::Metric;
use super::Scope::Statement;
use super::row;

const PLAN: &str = "EXPLAIN (ANALYZE, BUFFERS), track_io_timing";

#[rustfmt::skip] // rows read as the table that they are
pub(super) const ROWS: &[Metric] = &[
    row("plan_ms", "ms", Lower, Statement, Total, PLAN,
        "execution time of a query that was explained after the trial"),
    row("plan_blocks_hit", "", Neither, Statement, Total, PLAN,
        "blocks that it found in shared_buffers"),
    row("plan_blocks_read", "", Neither, Statement, Total, PLAN,
        "blocks that it asked the operating system for"),
    row("plan_read_ms", "ms", Lower, Statement, Total, PLAN,
        "time that it waited for those"),
    row("plan_block_read_us", "µs", Lower, Statement, Total, PLAN,
        "the same for one block: a few where the operating system had it in memory"),
    row("plan_heap_fetches", "", Lower, Statement, Total, PLAN,
        "rows for which its index-only scans had to look into the table"),
];
