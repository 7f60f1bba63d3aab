//! A latency histogram: nanoseconds, three significant digits, any duration up to 73 minutes.
//!
//! An HDR histogram (Gil Tene, <https://hdrhistogram.org>) holds the distribution, [`DurationSums`] the
//! exact count, sums and extremes beside it. Counters are 32 bits wide: half the cache of 64, and
//! a bucket saturates only after 4.29 · 10⁹ transactions within the same 0.1 % of latency. Memory
//! grows with the longest duration seen: 44 KiB up to 1 ms, 84 KiB up to 1 s, 132 KiB at most.

use std::fmt;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;

use crate::counters::Counters;
use crate::hdr_payload::{self, DecodeError};
use crate::moments::DurationSums;

/// A distribution of durations in nanoseconds. Recording takes a few nanoseconds and never fails.
#[derive(Clone, PartialEq)]
pub struct LatencyHistogram {
    counts: Counters,
    moments: DurationSums,
}

impl LatencyHistogram {
    /// Longer durations are counted in the bucket of this one (2⁴² − 1 ns, 73 minutes), so that
    /// no value makes the histogram larger than 132 KiB. The exact extreme stays in `max_ns`.
    pub const LIMIT_NS: u64 = (1 << 42) - 1;

    /// Significant decimal digits: two durations that differ by 0.1 % are told apart.
    pub const SIGNIFICANT_DIGITS: u8 = 3;

    /// An empty histogram of 8 KiB, which grows as longer durations are recorded.
    pub fn new() -> Self {
        LatencyHistogram { counts: Counters::new(), moments: DurationSums::default() }
    }

    /// Counts one duration.
    #[inline]
    pub fn record_ns(&mut self, value_ns: u64) {
        let fits = self.counts.open_mut().record(value_ns.min(Self::LIMIT_NS));
        debug_assert!(fits.is_ok(), "a histogram that resizes takes every value below the limit");
        self.moments.record_ns(value_ns);
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        let fits = self.counts.open_mut().add(&*other.counts.open());
        debug_assert!(fits.is_ok(), "a histogram that resizes takes every other");
        self.moments.merge(&other.moments);
    }

    /// Forgets all durations and keeps the memory.
    pub fn reset(&mut self) {
        self.counts.open_mut().reset();
        self.moments = DurationSums::default();
    }

    /// Number of durations that were recorded.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.moments.count == 0
    }

    /// The smallest recorded duration that at least `quantile` (0..1) of all durations do not
    /// exceed, ns, at most 0.1 % too long: HDR's "value at quantile", bounded by the exact
    /// extremes. `None` when empty or when `quantile` is not within 0..1.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        self.quantile_of(&self.counts.open(), quantile)
    }

    /// [`LatencyHistogram::quantile_ns`] of several quantiles.
    pub fn quantiles_ns<const N: usize>(&self, quantiles: [f64; N]) -> [Option<u64>; N] {
        if self.is_empty() {
            return [None; N];
        }
        let counts = self.counts.open();
        quantiles.map(|quantile| self.quantile_of(&counts, quantile))
    }

    /// [`LatencyHistogram::quantile_ns`] by counters that are open already.
    fn quantile_of(&self, counts: &Histogram<u32>, quantile: f64) -> Option<u64> {
        if self.is_empty() || !(0.0..=1.0).contains(&quantile) {
            return None;
        }
        let (min_ns, max_ns) = (self.moments.min_ns, self.moments.max_ns);
        if quantile == 1.0 {
            return Some(max_ns);
        }
        // 0.07 · 100 is a little more than 7 in binary; the neighbour below keeps such a product
        // from selecting the next duration. HdrHistogram for Java does the same.
        let value_ns = counts.value_at_quantile(quantile.next_down().max(0.0));
        if value_ns == 0 && min_ns > 0 {
            // A saturated counter hides durations: the search ran off the end.
            return Some(max_ns);
        }
        Some(value_ns.clamp(min_ns, max_ns))
    }

    /// The shortest duration, ns; exact. `None` when empty.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.moments.min_ns)
    }

    /// The longest duration, ns; exact. `None` when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.moments.max_ns)
    }

    /// Arithmetic mean, ns; exact. `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        self.moments.mean_ns()
    }

    /// Standard deviation of the population, ns; exact. `None` when empty.
    pub fn stddev_ns(&self) -> Option<f64> {
        self.moments.stddev_ns()
    }

    /// The sum of all durations, ns; exact.
    pub fn sum_ns(&self) -> u128 {
        self.moments.sum_ns
    }

    /// The exact sums, for carrying them along with [`LatencyHistogram::to_base64`], which does not.
    pub fn moments(&self) -> DurationSums {
        self.moments
    }

    /// Puts the exact sums back beside a decoded histogram. Sums that are not of this histogram, by their
    /// count or their extremes, are ignored: the estimates stay.
    pub fn with_moments(mut self, moments: DurationSums) -> Self {
        if moments.count == self.moments.count && moments.min_ns <= moments.max_ns {
            self.moments = moments;
        }
        self
    }

    /// Durations by rising length: the longest of each bucket, ns, and how many lie in it.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let counts = self.counts.open();
        let buckets = counts.iter_recorded().map(|bucket| {
            let value_ns = counts.highest_equivalent(bucket.value_iterated_to());
            (value_ns, u64::from(bucket.count_at_value()))
        });
        buckets.collect()
    }

    /// Number of durations in the buckets from this length on.
    pub fn count_from(&self, from_ns: u64) -> u64 {
        let buckets = self.buckets().into_iter();
        buckets.filter(|(longest_ns, _)| *longest_ns >= from_ns).map(|(_, count)| count).sum()
    }

    /// Sum of the durations in the buckets from this length on, in nanoseconds, each as the longest of its
    /// bucket.
    pub fn sum_from_ns(&self, from_ns: u64) -> u64 {
        let buckets = self.buckets().into_iter().filter(|(longest_ns, _)| *longest_ns >= from_ns);
        buckets.map(|(longest_ns, count)| longest_ns.saturating_mul(count)).sum()
    }

    /// Memory that it holds, bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.counts.memory_bytes()
    }

    /// Bytes that had to be unpacked to read it: what reading it cost. 0 for one that was recorded.
    pub fn unpacked_bytes(&self) -> usize {
        self.counts.unpacked_bytes()
    }

    /// The distribution in HDR's V2 encoding, compressed, in base64: what HDR logs contain. The
    /// exact moments are not part of it.
    pub fn to_base64(&self) -> String {
        hdr_payload::encode(&*self.counts.open(), V2DeflateSerializer::new())
    }

    /// Reads HDR's V2 encoding in base64, compressed or not, from any implementation. Mean,
    /// deviation and extremes are then estimates from the buckets: the mean within 0.05 %, the
    /// extremes the bounds of their buckets.
    ///
    /// # Errors
    /// When the text is no base64, no such histogram, or damaged.
    pub fn from_base64(text: &str) -> Result<Self, DecodeError> {
        let (counts, moments) = Counters::read(hdr_payload::bytes(text)?)?;
        Ok(LatencyHistogram { counts, moments })
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latency")
            .field("count", &self.count())
            .field("p50_ns", &self.quantile_ns(0.5))
            .field("p99_ns", &self.quantile_ns(0.99))
            .field("max_ns", &self.max_ns())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn latency_of(values: &[u64]) -> LatencyHistogram {
        let mut latency = LatencyHistogram::new();
        for &value in values {
            latency.record_ns(value);
        }
        latency
    }

    #[test]
    fn nothing_recorded_has_no_statistics() {
        let latency = LatencyHistogram::new();
        assert!(latency.is_empty());
        assert_eq!(latency.quantile_ns(0.5), None);
        assert_eq!((latency.min_ns(), latency.max_ns()), (None, None));
        assert_eq!((latency.mean_ns(), latency.stddev_ns()), (None, None));
        assert_eq!(LatencyHistogram::from_base64(&latency.to_base64()), Ok(latency));
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let latency = latency_of(&(1..=100).map(|ms| ms * 1_000).collect::<Vec<_>>());
        let check = |quantile: f64, expected_us: u64| {
            let value_ns = latency.quantile_ns(quantile).expect("not empty");
            let error = value_ns as f64 / (expected_us * 1_000) as f64 - 1.0;
            assert!((0.0..0.001).contains(&error), "{quantile}: {value_ns}");
        };
        check(0.0, 1);
        check(0.07, 7);
        check(0.5, 50);
        check(0.99, 99);
        check(0.991, 100);
        check(1.0, 100);
        for outside in [-0.1, 1.1, f64::NAN] {
            assert_eq!(latency.quantile_ns(outside), None, "{outside}");
        }
    }

    #[test]
    fn durations_beyond_the_limit_are_counted_and_the_memory_stays_bounded() {
        let latency = latency_of(&[1, LatencyHistogram::LIMIT_NS + 5, u64::MAX]);
        assert_eq!(latency.count(), 3);
        assert_eq!(latency.max_ns(), Some(u64::MAX));
        assert_eq!(latency.quantile_ns(1.0), Some(u64::MAX));
        assert!(latency.memory_bytes() < 136_000, "{}", latency.memory_bytes());
    }

    #[test]
    fn reset_forgets_values_and_keeps_memory() {
        let mut latency = latency_of(&[1_000_000_000]);
        let before = latency.memory_bytes();
        latency.reset();
        assert!(latency.is_empty() && latency.quantile_ns(0.5).is_none());
        assert_eq!(latency.memory_bytes(), before);
        latency.record_ns(5);
        assert_eq!((latency.min_ns(), latency.max_ns()), (Some(5), Some(5)));
    }

    #[test]
    fn damaged_text_is_refused() {
        let good = latency_of(&[1_000, 2_000_000]).to_base64();
        let plain = plain(&latency_of(&[1_000, 2_000_000]));
        for text in ["", "!", "AAAA", "AAAAAAAAAAAA", &good[..good.len() - 8], &plain[..56]] {
            assert!(LatencyHistogram::from_base64(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_read_takes_the_memory_of_what_was_read() {
        let dense = latency_of(&(1..=200_000).map(|n| n * 5_000).collect::<Vec<_>>());
        let text = dense.to_base64();
        let mut read = LatencyHistogram::from_base64(&text).expect("own encoding");
        assert!(read.memory_bytes() < 200 + text.len(), "{}", read.memory_bytes());
        assert!(read.unpacked_bytes() > text.len());
        assert_eq!(quantiles(&read.clone().with_moments(dense.moments())), quantiles(&dense));
        read.record_ns(7);
        assert_eq!((read.count(), read.min_ns()), (dense.count() + 1, Some(7)));
        assert!(read.memory_bytes() > 80_000);
    }

    #[test]
    fn moments_travel_beside_the_encoding() {
        let original = latency_of(&[12_345, 67_891, 1_000_003]);
        let decoded = LatencyHistogram::from_base64(&original.to_base64()).expect("own encoding");
        assert_eq!(decoded.clone().with_moments(original.moments()), original);
        assert_eq!(decoded.clone().with_moments(DurationSums::default()), decoded);
        let reversed = DurationSums { min_ns: u64::MAX, ..original.moments() };
        assert_eq!(decoded.clone().with_moments(reversed), decoded);
    }

    fn durations() -> impl Strategy<Value = Vec<u64>> {
        let any_magnitude = (0u32..42).prop_flat_map(|bits| 0..=(1u64 << bits));
        prop::collection::vec(any_magnitude, 1..200)
    }

    /// As [`LatencyHistogram::to_base64`], without compression, as other programs write it.
    fn plain(latency: &LatencyHistogram) -> String {
        hdr_payload::encode(
            &*latency.counts.open(),
            hdrhistogram::serialization::V2Serializer::new(),
        )
    }

    const QUANTILES: [f64; 7] = [0.0, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0];

    fn quantiles(latency: &LatencyHistogram) -> Vec<Option<u64>> {
        let all = QUANTILES.iter().map(|&quantile| latency.quantile_ns(quantile)).collect();
        assert_eq!(latency.quantiles_ns(QUANTILES).to_vec(), all);
        all
    }

    proptest! {
        #[test]
        fn quantiles_are_within_the_histograms_precision(mut values in durations()) {
            let latency = latency_of(&values);
            values.sort_unstable();
            for quantile in QUANTILES {
                let rank = (quantile * values.len() as f64).ceil().max(1.0) as usize;
                let exact = values[rank - 1];
                let value = latency.quantile_ns(quantile).expect("not empty");
                prop_assert!(value >= exact && value as f64 <= exact as f64 * 1.001,
                    "{} for {} at {}", value, exact, quantile);
            }
        }

        #[test]
        fn merging_is_recording_in_any_order(a in durations(), b in durations(), c in durations()) {
            let all = latency_of(&[a.clone(), b.clone(), c.clone()].concat());
            let (a, b, c) = (latency_of(&a), latency_of(&b), latency_of(&c));
            for order in [[&a, &b, &c], [&c, &b, &a], [&b, &a, &c]] {
                let mut merged = LatencyHistogram::new();
                order.iter().for_each(|part| merged.merge(part));
                prop_assert_eq!(quantiles(&merged), quantiles(&all));
                prop_assert_eq!(merged.moments(), all.moments());
            }
            let mut right = b.clone();
            right.merge(&c);
            let mut nested = a.clone();
            nested.merge(&right);
            prop_assert_eq!(quantiles(&nested), quantiles(&all));
        }

        #[test]
        fn both_encodings_round_trip(values in durations()) {
            let latency = latency_of(&values);
            for text in [latency.to_base64(), plain(&latency)] {
                let decoded = LatencyHistogram::from_base64(&text).expect("own encoding");
                prop_assert_eq!(decoded.count(), latency.count());
                prop_assert_eq!(&decoded.with_moments(latency.moments()), &latency);
            }
        }

        #[test]
        fn estimated_moments_are_close(values in prop::collection::vec(1_000u64..1 << 40, 1..200)) {
            let latency = latency_of(&values);
            let decoded = LatencyHistogram::from_base64(&latency.to_base64()).expect("own encoding");
            let ratio = decoded.mean_ns().unwrap() / latency.mean_ns().unwrap();
            prop_assert!((ratio - 1.0).abs() <= 0.001, "{}", ratio);
        }

        #[test]
        fn no_bytes_make_decoding_panic(
            values in durations(),
            at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            use base64::Engine;
            use base64::engine::general_purpose::STANDARD;
            let mut bytes = STANDARD.decode(plain(&latency_of(&values))).unwrap();
            for (index, byte) in at {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            let _ = LatencyHistogram::from_base64(&STANDARD.encode(&bytes));
            let _ = LatencyHistogram::from_base64(&STANDARD.encode(&bytes[..cut.index(bytes.len())]));
        }
    }
}
