//! The random numbers of a client whose workload has turns.

use script::Xoroshiro128;

use crate::session::{Cycle, Session};

/// Begins a client's random numbers anew with each turn, so that clients of the same rank draw the
/// same ones in turns of the same number, however many transactions they have run before.
pub(crate) struct Draws {
    /// The same for clients of the same rank.
    seed: u64,
    /// The turn that the numbers belong to.
    number: Option<u64>,
    /// Chooses scripts. The lane's own state would be shared with clients of other workloads.
    pub(super) choose: Xoroshiro128,
}

impl Draws {
    /// The draws of the client whose first random numbers these are.
    pub(super) fn new(prng: &Xoroshiro128) -> Draws {
        let seed = prng.clone().next_u64();
        Draws { seed, number: None, choose: Xoroshiro128::from_seed(seed) }
    }

    /// The session is about to begin a transaction in turn `number`. With a new turn its random numbers and
    /// its cycles begin anew.
    pub(super) fn begin(&mut self, number: u64, session: &mut Session) {
        if self.number.replace(number) == Some(number) {
            return;
        }
        session.cycle = Cycle::First;
        // Distinct seeds for distinct turns: the multiplier is odd.
        let seed = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut source = Xoroshiro128::from_seed(seed);
        session.prng = Xoroshiro128::from_seed(source.next_u64());
        self.choose = Xoroshiro128::from_seed(source.next_u64());
    }
}
