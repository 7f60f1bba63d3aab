//! Metrics of poolers and links.

use super::MetricDirection::{Lower, Neither};
use super::MetricKind::{Gauge, Rate, Total};
use super::MetricScope::Node;
use super::{Metric, MetricOrigin, MetricSource, by, labelled, row};

const POOLS: MetricOrigin = by(MetricSource::Server, "PgBouncer, SHOW POOLS");
const STATS: MetricOrigin = by(MetricSource::Server, "PgBouncer, SHOW STATS");
const LINK: MetricOrigin =
    by(MetricSource::Machine, "the relay's own counters, /proc/net/dev of a network namespace");
const CROSSING: MetricOrigin =
    by(MetricSource::Machine, "an echo behind the link, a query over it");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    POOL_CLIENTS_ACTIVE = labelled("database", row("pool_clients_active", "", Neither, Node, Gauge, POOLS,
        "clients of a pooler that have a server connection or ask for nothing")),
    POOL_CLIENTS_WAITING = labelled("database", row("pool_clients_waiting", "", Lower, Node, Gauge, POOLS,
        "clients that wait for a server connection")),
    POOL_SERVERS_ACTIVE = labelled("database", row("pool_servers_active", "", Neither, Node, Gauge, POOLS,
        "server connections that a client uses")),
    POOL_SERVERS_IDLE = labelled("database", row("pool_servers_idle", "", Neither, Node, Gauge, POOLS,
        "idle server connections")),
    POOL_LONGEST_WAIT_MS = labelled("database", row("pool_longest_wait_ms", "ms", Lower, Node, Gauge, POOLS,
        "how long the first client in line has waited for a server connection")),
    POOL_TRANSACTIONS = labelled("database", row("pool_transactions", "1/s", Neither, Node, Rate, STATS,
        "transactions that passed a pooler")),
    POOL_QUERIES = labelled("database", row("pool_queries", "1/s", Neither, Node, Rate, STATS,
        "queries that passed a pooler")),
    POOL_WAIT_MS = labelled("database", row("pool_wait_ms", "ms/s", Lower, Node, Rate, STATS,
        "time that clients waited for a server connection, all together")),

    LINK_TO_BYTES = row("link_to_bytes", "B/s", Neither, Node, Rate, LINK,
        "bytes that arrived at the server a link leads to"),
    LINK_FROM_BYTES = row("link_from_bytes", "B/s", Neither, Node, Rate, LINK,
        "bytes that arrived from the server a link leads to"),
    LINK_TO_PACKETS = row("link_to_packets", "1/s", Neither, Node, Rate, LINK,
        "packets to the server; of a relay, the pieces that it read"),
    LINK_FROM_PACKETS = row("link_from_packets", "1/s", Neither, Node, Rate, LINK,
        "packets from the server; of a relay, the pieces that it read"),
    LINK_ROUND_TRIP_MS = row("link_round_trip_ms", "ms", Lower, Node, Total, CROSSING,
        "median round trip over a link, its delay included, before the clients come"),
    LINK_CARRIES_BYTES = row("link_carries_bytes", "B/s", Neither, Node, Total, CROSSING,
        "rows that one session reads over a link from the server it leads to, before the clients come"),
    LINK_LATE_MS = row("link_late_ms", "ms/s", Lower, Node, Rate, LINK,
        "how much later than they should have a relay's pieces were passed on, all together"),
}
