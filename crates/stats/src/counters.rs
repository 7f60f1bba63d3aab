//! The counters of a latency histogram: open, to be counted in, or closed, as they were read.
//!
//! A record has thousands of histograms, of which a report looks at one after the other. Open, each
//! would take up to 132 KiB, whatever few bytes it was read from; closed, it takes these bytes.

use std::borrow::Cow;
use std::sync::Arc;

use hdrhistogram::Histogram;

use crate::hdr_payload::{self, DecodeError};
use crate::latency::LatencyHistogram;
use crate::moments::DurationSums;

/// Counters, 32 bits wide.
#[derive(Clone)]
pub(crate) enum Counters {
    Open(Histogram<u32>),
    /// HDR's V2 encoding, which was opened once and is sound.
    Closed {
        bytes: Arc<[u8]>,
        unpacked: u32,
    },
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters::Open(empty())
    }

    /// Counters that are encoded so, and sums that are estimated from them.
    pub(crate) fn read(bytes: Vec<u8>) -> Result<(Counters, DurationSums), DecodeError> {
        let (decoded, unpacked) = hdr_payload::decode(&bytes)?;
        let mut moments = DurationSums::default();
        for bucket in decoded.iter_recorded() {
            let middle_ns = decoded.median_equivalent(bucket.value_iterated_to());
            moments.record_n_ns(middle_ns, bucket.count_at_value());
        }
        if moments.count > 0 {
            moments.min_ns = decoded.min();
            moments.max_ns = decoded.max();
        }
        let unpacked = u32::try_from(unpacked).unwrap_or(u32::MAX);
        Ok((Counters::Closed { bytes: bytes.into(), unpacked }, moments))
    }

    pub(crate) fn open(&self) -> Cow<'_, Histogram<u32>> {
        match self {
            Counters::Open(counts) => Cow::Borrowed(counts),
            Counters::Closed { bytes, .. } => Cow::Owned(opened(bytes)),
        }
    }

    #[inline]
    pub(crate) fn open_mut(&mut self) -> &mut Histogram<u32> {
        if let Counters::Closed { bytes, .. } = self {
            *self = Counters::Open(opened(bytes));
        }
        match self {
            Counters::Open(counts) => counts,
            Counters::Closed { .. } => unreachable!("it was opened"),
        }
    }

    /// Bytes that had to be unpacked to read them; 0 where they were not read.
    pub(crate) fn unpacked_bytes(&self) -> usize {
        match self {
            Counters::Open(_) => 0,
            Counters::Closed { unpacked, .. } => *unpacked as usize,
        }
    }

    /// Memory that they hold beside themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Counters::Open(counts) => counts.distinct_values() * size_of::<u32>(),
            Counters::Closed { bytes, .. } => bytes.len(),
        }
    }
}

impl PartialEq for Counters {
    fn eq(&self, other: &Counters) -> bool {
        self.open() == other.open()
    }
}

fn empty() -> Histogram<u32> {
    Histogram::new(LatencyHistogram::SIGNIFICANT_DIGITS).expect("three digits are supported")
}

#[cold]
fn opened(bytes: &[u8]) -> Histogram<u32> {
    let mut counts = empty();
    // They were decoded before; if they were not sound, nothing would have been counted.
    let Ok((decoded, _)) = hdr_payload::decode(bytes) else { return counts };
    for bucket in decoded.iter_recorded() {
        let low_ns = decoded.lowest_equivalent(bucket.value_iterated_to());
        let count = u32::try_from(bucket.count_at_value()).unwrap_or(u32::MAX);
        let fits = counts.record_n(low_ns.min(LatencyHistogram::LIMIT_NS), count);
        debug_assert!(fits.is_ok(), "a histogram that resizes takes every value below the limit");
    }
    counts
}
