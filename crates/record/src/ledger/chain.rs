//! The values that a client writes: each made from the one before.

use stats::mix;

/// A client's hash chain.
///
/// The value of a transaction is a hash of the last acknowledged one, the client and the sequence
/// number, so that a row which was written over, or comes from elsewhere, does not fit. After a
/// transaction whose outcome is unknown it is unknown which value is the last one: a new epoch
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashChain {
    client: u32,
    seed: u64,
    epoch: u64,
    link: u64,
}

impl HashChain {
    /// The chain of `client` before its first transaction. Another `seed` makes other values: rows
    /// of an earlier load do not pass for rows of this one.
    pub fn new(seed: u64, client: u32) -> HashChain {
        let mut chain = HashChain { client, seed, epoch: 0, link: 0 };
        chain.begin_epoch();
        chain
    }

    /// The value of transaction `seq`, if it is the next one to be sent.
    pub fn value(&self, seq: u64) -> i64 {
        mix(mix(self.link ^ u64::from(self.client)) ^ seq) as i64
    }

    /// The transaction with this value was acknowledged.
    pub fn acknowledged(&mut self, value: i64) {
        self.link = value as u64;
    }

    /// The outcome of the last transaction is unknown.
    pub fn unknown(&mut self) {
        self.epoch += 1;
        self.begin_epoch();
    }

    fn begin_epoch(&mut self) {
        self.link = mix(mix(self.seed) ^ self.epoch);
    }
}
