//! `/proc/diskstats`.

use spec::{Metric, metrics};

use crate::reading::Reading;

/// The kernel counts sectors of 512 bytes, whatever the device's own size is.
const SECTOR_BYTES: f64 = 512.0;

/// Metric of each field of a line, from 1 after the device's name
/// (Documentation/admin-guide/iostats.rst), and the factor by which it is multiplied. Times are
/// milliseconds; the share of time with I/O in flight becomes percent once it is a rate.
const FIELDS: [(usize, &Metric, f64); 8] = [
    (1, &metrics::DISK_READS, 1.0),
    (3, &metrics::DISK_READ_BYTES, SECTOR_BYTES),
    (4, &metrics::DISK_READ_MS, 1.0),
    (5, &metrics::DISK_WRITES, 1.0),
    (7, &metrics::DISK_WRITE_BYTES, SECTOR_BYTES),
    (8, &metrics::DISK_WRITE_MS, 1.0),
    (10, &metrics::DISK_BUSY_PCT, 0.1),
    (16, &metrics::DISK_FLUSHES, 1.0),
];

/// The traffic of every device for which `wanted` holds and that ever read or wrote something.
pub(super) fn from_diskstats(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Reading> {
    let mut readings = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().skip(2);
        let Some(device) = words.next().filter(|device| wanted(device)) else { continue };
        let fields: Vec<Option<u64>> = words.map(|word| word.parse().ok()).collect();
        let field = |n: usize| fields.get(n - 1).copied().flatten();
        // A device that has read and written nothing is none that anybody uses.
        if field(1).unwrap_or(0) == 0 && field(5).unwrap_or(0) == 0 {
            continue;
        }
        readings.extend(FIELDS.iter().filter_map(|(n, metric, factor)| {
            Some(Reading::new(metric, device, field(*n)? as f64 * factor))
        }));
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, f64)]) {
        let got = from_diskstats(text, |device| device != "vda1");
        let got: Vec<_> = got.iter().map(|r| (r.metric.name, r.label.as_str(), r.value)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_disk_beside_an_unused_one_and_a_partition() {
        check(
            "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             254       1 vda1 1 1 1 1 1 1 1 1 0 1 1 0 0 0 0 1 1\n\
             254       0 vda 30702 6502 3530130 15274 6097 10587 565520 2057 0 4484 17559 \
             3373 97 145968 213 398 14\n",
            &[
                ("disk_reads", "vda", 30702.0),
                ("disk_read_bytes", "vda", 3_530_130.0 * 512.0),
                ("disk_read_ms", "vda", 15274.0),
                ("disk_writes", "vda", 6097.0),
                ("disk_write_bytes", "vda", 565_520.0 * 512.0),
                ("disk_write_ms", "vda", 2057.0),
                ("disk_busy_pct", "vda", 448.40000000000003),
                ("disk_flushes", "vda", 398.0),
            ],
        );
    }

    #[test]
    fn a_kernel_before_5_5_has_no_flushes() {
        let text = "8 0 sda 1 0 8 3 0 0 0 0 0 4 4\n";
        assert!(!from_diskstats(text, |_| true).iter().any(|r| r.metric == &metrics::DISK_FLUSHES));
    }

    #[test]
    fn garbage_gives_nothing() {
        check("", &[]);
        check("8 0", &[]);
        check("8 0 sda x y z", &[]);
    }
}
