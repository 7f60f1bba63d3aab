//! A sample of the values with which a statement was called: every call has the same chance to be in it.
//!
//! Vitter, "Random Sampling with a Reservoir", ACM TOMS 11 (1985), algorithm R.

/// The values of one call by `$n`; none is NULL.
pub type ValueRow = Vec<(u32, Option<String>)>;

/// Calls whose values are kept for one text.
pub const CALLS_MAX: usize = 10_000;

/// Bytes of values that are kept for one text.
const BYTES_MAX: usize = 4 << 20;

/// A uniform sample of calls.
#[derive(Clone, Debug, Default)]
pub struct CallSample {
    /// The calls in the sample.
    pub rows: Vec<ValueRow>,
    /// The calls that were offered.
    pub offered: u64,
    bytes: usize,
}

impl CallSample {
    /// Takes a call into the sample with the chance that all calls have.
    pub(crate) fn offer(&mut self, row: ValueRow) {
        self.offered += 1;
        let bytes: usize =
            // NULL takes no more room than its place.
            row.iter().map(|(_, value)| 48 + value.as_ref().map_or(0, String::len)).sum();
        if self.rows.len() < CALLS_MAX && self.bytes + bytes <= BYTES_MAX {
            self.bytes += bytes;
            self.rows.push(row);
            return;
        }
        // The sample is the same for the same source.
        let drawn = stats::mix(self.offered) % self.offered;
        let place = usize::try_from(drawn).unwrap_or(usize::MAX);
        // A row that is too large for the memory leaves the sample as it is.
        if let Some(kept) = self.rows.get_mut(place)
            && bytes <= BYTES_MAX / 16
        {
            *kept = row;
        }
    }

    /// True if every call is in it.
    pub fn is_complete(&self) -> bool {
        self.offered == self.rows.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_the_same_chance() {
        let mut reservoir = CallSample::default();
        let calls = 200_000_u64;
        for call in 0..calls {
            reservoir.offer(vec![(1, Some(call.to_string()))]);
        }
        assert_eq!(reservoir.offered, calls);
        assert!(!reservoir.is_complete());
        let value =
            |row: &ValueRow| row[0].1.as_ref().and_then(|text| text.parse::<f64>().ok()).unwrap();
        let mean = reservoir.rows.iter().map(value).sum::<f64>() / reservoir.rows.len() as f64;
        // The mean of a uniform sample of 10,000 has a standard deviation of 0.3 % of the range.
        assert!((mean / calls as f64 - 0.5).abs() < 0.015, "{mean}");
    }
}
