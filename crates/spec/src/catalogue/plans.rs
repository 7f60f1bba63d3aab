//! Metrics from EXPLAIN of a query after a trial.

use super::MetricDirection::{Lower, Neither};
use super::MetricKind::Total;
use super::MetricScope::Statement;
use super::{Metric, MetricOrigin, MetricSource, by, row};

const PLAN: MetricOrigin = by(MetricSource::Check, "EXPLAIN (ANALYZE, BUFFERS), track_io_timing");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    PLAN_MS = row("plan_ms", "ms", Lower, Statement, Total, PLAN,
        "execution time of a query that was explained after the trial"),
    PLAN_BLOCKS_HIT = row("plan_blocks_hit", "", Neither, Statement, Total, PLAN,
        "blocks that it found in shared_buffers"),
    PLAN_BLOCKS_READ = row("plan_blocks_read", "", Neither, Statement, Total, PLAN,
        "blocks that it asked the operating system for"),
    PLAN_READ_MS = row("plan_read_ms", "ms", Lower, Statement, Total, PLAN,
        "time that it waited for those"),
    PLAN_BLOCK_READ_US = row("plan_block_read_us", "µs", Lower, Statement, Total, PLAN,
        "the same for one block: a few where the operating system had it in memory"),
    PLAN_HEAP_FETCHES = row("plan_heap_fetches", "", Lower, Statement, Total, PLAN,
        "rows for which its index-only scans had to look into the table"),
}
