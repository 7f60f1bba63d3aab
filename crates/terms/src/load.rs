//! Terms of clients.

use serde::{Deserialize, Serialize};

/// Time at which a transaction starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As soon as the one before has ended.
    Closed,
    /// Open loop, exponential gaps, transactions a second over all clients.
    Poisson(f64),
    /// Open loop, equal gaps, transactions a second over all clients.
    Constant(f64),
}

impl Pace {
    /// Transactions a second over all clients; none in closed loop.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Poisson(rate) | Self::Constant(rate) => Some(rate),
        }
    }

    /// Distribution of the gaps between transactions; none in closed loop.
    pub fn arrivals(self) -> Option<&'static str> {
        match self {
            Self::Closed => None,
            Self::Poisson(_) => Some("Poisson"),
            Self::Constant(_) => Some("constant"),
        }
    }

    /// Open loop at another rate, with the same distribution of gaps; Poisson from closed loop.
    pub fn at(self, rate: f64) -> Pace {
        match self {
            Self::Closed | Self::Poisson(_) => Self::Poisson(rate),
            Self::Constant(_) => Self::Constant(rate),
        }
    }
}

/// Reaction of a client to the loss of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLoss {
    /// It aborts, as in pgbench.
    Abort,
    /// It connects again, with back-off, and goes on with its next transaction.
    Reconnect,
}

/// The part of a load that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmUp {
    /// Exactly so long, in milliseconds.
    Fixed(u64),
    /// Until throughput is steady, between these bounds in milliseconds.
    Auto {
        /// At least so long.
        min_ms: u64,
        /// At most so long.
        max_ms: u64,
    },
}
