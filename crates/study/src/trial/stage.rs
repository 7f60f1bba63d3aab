//! The stages of a load, for those who look on.

/// The stages of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadStage {
    /// Clients connect.
    Connecting {
        /// Connected.
        done: u32,
        /// Planned.
        of: u32,
    },
    /// Warm-up: it does not count.
    WarmingUp {
        /// Since the load began, in seconds.
        seconds: f64,
    },
    /// The window is open.
    Measuring {
        /// Since the window opened.
        seconds: f64,
        /// The length.
        of_s: f64,
        /// Transactions a second in the last second.
        tps: f64,
        /// 99th percentile of the latency in the last second.
        p99_ms: Option<f64>,
        /// Transactions that are due and not started; 0 where there is no rate.
        backlog: u64,
    },
}
