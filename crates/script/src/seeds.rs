//! Seed of each generator.
//!
//! pgbench draws the seeds of all its generators from one base sequence: first the clients in
//! order, then `:default_seed` unless `-D` gave it, then for every thread the choice of scripts,
//! the throttle and the sampling. The same order gives the same run.

use crate::prng::Xoroshiro128;

/// Values of `--random-seed` and `PGBENCH_RANDOM_SEED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomSeed {
    /// `time`, and the default: from the clock.
    Time,
    /// `rand`: from a strong random source.
    Strong,
    /// This number.
    Given(u64),
}

/// Neither an unsigned integer, "time" nor "rand".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized random seed option \"{0}\"")]
pub struct RandomSeedError(
    /// The value that was given.
    pub String,
);

impl RandomSeedError {
    /// The detail line that pgbench prints below.
    pub const DETAIL: &'static str = "Expecting an unsigned integer, \"time\" or \"rand\".";
}

impl RandomSeed {
    /// Read an option's value.
    pub fn parse(text: &str) -> Result<RandomSeed, RandomSeedError> {
        match text {
            "time" => Ok(RandomSeed::Time),
            "rand" => Ok(RandomSeed::Strong),
            // C's scanf takes white space and a sign before the digits.
            _ => {
                let unsigned = text.trim_start();
                let negative = unsigned.strip_prefix('-');
                let digits = negative.or(unsigned.strip_prefix('+')).unwrap_or(unsigned);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(RandomSeedError(text.to_owned()));
                }
                // What does not fit stays at the end, on either side of zero.
                Ok(RandomSeed::Given(match (digits.parse(), negative) {
                    (Ok(number), None) => number,
                    (Ok(number), Some(_)) => 0_u64.wrapping_sub(number),
                    (Err(_), _) => u64::MAX,
                }))
            }
        }
    }
}

/// The generators of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadStates {
    /// Chooses the script of each transaction.
    pub choose: Xoroshiro128,
    /// Paces `--rate`.
    pub throttle: Xoroshiro128,
    /// Samples the log.
    pub sample: Xoroshiro128,
}

/// All generators of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomSeeds {
    /// `:random_seed`: where everything started.
    pub random_seed: u64,
    /// `:default_seed`.
    pub default_seed: i64,
    /// The generator of each client's functions.
    pub clients: Vec<Xoroshiro128>,
    /// The generators of each thread.
    pub threads: Vec<ThreadStates>,
}

impl RandomSeeds {
    /// The generators of a run with so many clients and threads. `default_seed` is what `-D
    /// default_seed=…` says: nothing is drawn for it then.
    pub fn new(
        random_seed: u64,
        clients: usize,
        threads: usize,
        default_seed: Option<i64>,
    ) -> RandomSeeds {
        let mut base = Xoroshiro128::from_seed(random_seed);
        let clients = (0..clients).map(|_| Xoroshiro128::from_seed(base.next_u64())).collect();
        let default_seed = default_seed.unwrap_or_else(|| base.next_u64() as i64);
        let mut seeded = || Xoroshiro128::from_seed(base.next_u64());
        let threads = (0..threads)
            .map(|_| ThreadStates { choose: seeded(), throttle: seeded(), sample: seeded() })
            .collect();
        RandomSeeds { random_seed, default_seed, clients, threads }
    }
}
