//! Limits on the memory that reading a record may take. A few bytes of a file can stand for much
//! more in memory, and anybody may have made the file: so memory is counted as it is taken,
//! whatever it is taken by.

use std::cell::Cell;
use std::path::Path;

use crate::error::Error;

/// Memory that the first page, the attempts and the pairs of a record take together. A run of six
/// hours with a thousand trials has about half of it.
const RECORD_BYTES_MAX: u64 = 48 << 20;

/// Bytes that are kept of one attempt while it is read second by second: a day with two workloads,
/// five servers and a sample a second has about half of it.
const TRIAL_BYTES_MAX: u64 = 64 << 20;

/// Bytes that the histograms of all attempts of a record may unpack to together.
const RECORD_UNPACKED_MAX: u64 = 48 << 20;

/// Bytes that the histograms of one attempt's intervals may unpack to: fourteen hours of seconds in
/// a closed loop, five in an open one, with two thousand different latencies in each.
const TRIAL_UNPACKED_MAX: u64 = 96 << 20;

thread_local! {
    /// Bytes that histograms may still unpack to; none outside of a record.
    static UNPACKED_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Memory that a reader may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// What the allowance is for, in messages.
    of: &'static str,
    kept: u64,
    kept_max: u64,
    unpacked_left: u64,
    unpacked_max: u64,
}

impl Allowance {
    /// For opening a record.
    pub(crate) fn of_record() -> Allowance {
        Allowance {
            of: "a record",
            kept: 0,
            kept_max: RECORD_BYTES_MAX,
            unpacked_left: RECORD_UNPACKED_MAX,
            unpacked_max: RECORD_UNPACKED_MAX,
        }
    }

    /// For looking at one attempt.
    pub(crate) fn of_trial() -> Allowance {
        Allowance {
            of: "one attempt",
            kept: 0,
            kept_max: TRIAL_BYTES_MAX,
            unpacked_left: TRIAL_UNPACKED_MAX,
            unpacked_max: TRIAL_UNPACKED_MAX,
        }
    }

    /// Counts memory that something in this file takes from now on.
    pub(crate) fn keep(&mut self, bytes: usize, path: &Path) -> Result<(), Error> {
        self.kept = self.kept.saturating_add(bytes as u64);
        match self.kept > self.kept_max {
            true => Err(self.exceeded(path, "bytes of memory", self.kept_max)),
            false => Ok(()),
        }
    }

    /// Reads what has histograms in it.
    pub(crate) fn unpacking<T>(
        &mut self,
        path: &Path,
        read: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        UNPACKED_LEFT.set(Some(self.unpacked_left));
        let read = read();
        let left =
            UNPACKED_LEFT.take().expect("it was set above, and nothing but this function takes it");
        self.unpacked_left = left;
        match left {
            0 => Err(self.exceeded(path, "bytes of histograms, unpacked", self.unpacked_max)),
            _ => read,
        }
    }

    fn exceeded(&self, path: &Path, what: &'static str, max: u64) -> Error {
        // A file that is gone since has no size any more; what the message is about is the limit.
        let bytes = path.symlink_metadata().map_or(0, |file| file.len());
        Error::TooMuch { path: path.to_owned(), bytes, of: self.of, what, max }
    }
}

/// Counts a histogram that was unpacked; whether that is still allowed.
pub(crate) fn unpacked(bytes: usize) -> bool {
    let left = UNPACKED_LEFT.get().map(|left| left.saturating_sub(bytes as u64));
    UNPACKED_LEFT.set(left);
    left != Some(0)
}
