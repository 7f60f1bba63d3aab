//! The statements of logical replication: slots on one server, subscriptions on another.

/// Drops a subscription without its slot, so that no server waits for another.
pub(crate) fn drop_subscription(name: &str) -> String {
    format!(
        "ALTER SUBSCRIPTION {name} DISABLE;
         ALTER SUBSCRIPTION {name} SET (slot_name = NONE);
         DROP SUBSCRIPTION {name};"
    )
}

pub(crate) const SUBSCRIPTION: &str = "
    SELECT FROM pg_subscription JOIN pg_database d ON d.oid = subdbid
    WHERE subname = $1 AND datname = current_database()";

pub(crate) const PROGRESS: &str = "
    SELECT count(srrelid), count(srrelid) FILTER (WHERE srsubstate <> 'r'), subenabled,
           (SELECT count(pid) FROM pg_stat_subscription w WHERE w.subid = s.oid)
    FROM pg_subscription s JOIN pg_database d ON d.oid = subdbid
    LEFT JOIN pg_subscription_rel ON s.oid = srsubid
    WHERE subname = $1 AND datname = current_database()
    GROUP BY s.oid, subenabled";

pub(crate) const SLOT: &str = "SELECT FROM pg_replication_slots WHERE slot_name = $1";

pub(crate) const END_WALSENDER: &str = "
    SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
    WHERE slot_name = $1 AND active_pid IS NOT NULL";

pub(crate) const DROP_SLOT: &str = "
    SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
    WHERE slot_name = $1 AND NOT active";
