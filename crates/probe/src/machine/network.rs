//! `/proc/net/dev`.

use spec::{Metric, metrics};

use crate::reading::Reading;

/// Metric of each column, from 0 after the interface's name (proc(5)).
const COLUMNS: [(usize, &Metric); 4] = [
    (0, &metrics::NET_RECEIVE_BYTES),
    (1, &metrics::NET_RECEIVE_PACKETS),
    (8, &metrics::NET_SEND_BYTES),
    (9, &metrics::NET_SEND_PACKETS),
];

/// Bytes and packets of every interface that ever received or sent something.
pub(super) fn from_net_dev(text: &str) -> Vec<Reading> {
    let mut readings = Vec::new();
    for line in text.lines() {
        // The two header lines have no colon.
        let Some((interface, rest)) = line.split_once(':') else { continue };
        let columns: Vec<Option<u64>> =
            rest.split_whitespace().map(|word| word.parse().ok()).collect();
        let of = |(n, metric): &(usize, &'static Metric)| {
            let value = columns.get(*n).copied().flatten()? as f64;
            Some(Reading::new(metric, interface.trim(), value))
        };
        let found: Vec<Reading> = COLUMNS.iter().filter_map(of).collect();
        if found.iter().any(|reading| reading.value > 0.0) {
            readings.extend(found);
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, f64)]) {
        let got = from_net_dev(text);
        let got: Vec<_> = got.iter().map(|r| (r.metric.name, r.label.as_str(), r.value)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn interfaces_with_traffic() {
        check(
            "Inter-|   Receive                    |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n\
             \x20 ifb0:       0       0    0    0    0     0          0         0        0   0\n\
             \x20 eth0: 45703968    2606    0    0    0     0          0         0   312866  2166\n",
            &[
                ("net_receive_bytes", "eth0", 45_703_968.0),
                ("net_receive_packets", "eth0", 2606.0),
                ("net_send_bytes", "eth0", 312_866.0),
                ("net_send_packets", "eth0", 2166.0),
            ],
        );
    }

    #[test]
    fn a_line_cut_short_gives_what_it_has() {
        check(
            "lo:12 3\n",
            &[("net_receive_bytes", "lo", 12.0), ("net_receive_packets", "lo", 3.0)],
        );
        check("lo:\n:::\n", &[]);
    }
}
