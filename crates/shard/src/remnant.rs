//! Subscriptions, slots and publications of this cluster that belong to no move under way. A slot that nobody
//! uses keeps WAL for ever, and a subscription that nobody knows takes what another one is to get.
//!
//! They come back with a server that is restored to the middle of a move, and stay where a server did not
//! answer or the proxy has lost a move. Servers that have left the cluster are asked, too.

use std::fmt;
use std::time::Duration;

use postgres::Row;
use server::{Client, Limits};

use crate::cluster::{Cluster, connect_within, node_name, on_node, on_proxy};
use crate::error::Error;
use crate::plan::Batch;

/// A server that is asked for remnants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemnantPlace {
    /// The node of this number.
    Node(i32),
    /// A server that has left the cluster.
    Former(FormerNode),
}

/// A server that has left the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormerNode {
    pub(crate) conninfo: String,
    /// The number that it had, which another node may have now.
    pub(crate) number: i32,
}

/// The kinds, in the order in which they are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemnantKind {
    Subscription,
    Slot,
    /// A slot by which a single table was copied.
    TableSlot,
    Publication,
}

/// A part of replication that belongs to no move under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicationRemnant {
    pub(crate) kind: RemnantKind,
    pub(crate) name: String,
    pub(crate) place: RemnantPlace,
}

impl fmt::Display for ReplicationRemnant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            RemnantKind::Subscription => "subscription",
            RemnantKind::Slot | RemnantKind::TableSlot => "slot",
            RemnantKind::Publication => "publication",
        };
        write!(f, "{kind} {} on ", self.name)?;
        match &self.place {
            RemnantPlace::Node(number) => write!(f, "node {number}"),
            RemnantPlace::Former(former) => {
                let place = crate::status::place(&former.conninfo);
                write!(f, "{place}, which has left as node {}", former.number)
            }
        }
    }
}

/// Replication of a server: this cluster's subscriptions, slots and publications, and the subscriptions of
/// all its databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerReplication {
    pub(crate) place: RemnantPlace,
    system: String,
    subscribed: Vec<i64>,
    subscriptions: Vec<String>,
    slots: Vec<String>,
    publications: Vec<String>,
    /// The slots that a walsender uses.
    active: Vec<String>,
}

impl ServerReplication {
    fn read(place: RemnantPlace, row: &Row) -> Self {
        Self {
            place,
            system: row.get(0),
            subscribed: row.get(1),
            subscriptions: row.get(2),
            slots: row.get(3),
            publications: row.get(4),
            active: row.get(5),
        }
    }
}

/// The remnants of servers. `prefix` begins the names of all moves of this cluster, whose numbers follow. Unless all
/// nodes have answered, none is a slot by which a table was copied: a node that is silent may be copying it.
pub(crate) fn remnants(
    servers: &[ServerReplication],
    batches: &[(i32, Batch)],
    prefix: &str,
    have_all_answered: bool,
) -> Vec<ReplicationRemnant> {
    let mut found = Vec::new();
    for server in servers {
        let is_used = |name: &String, end: fn(&Batch) -> i32| {
            let Some(number) = name.strip_prefix(prefix).and_then(|text| text.parse().ok()) else {
                return true;
            };
            batches.iter().any(|(known, batch)| {
                *known == number
                    && match &server.place {
                        RemnantPlace::Node(node) => end(batch) == *node,
                        // It may be a node again, under another address.
                        RemnantPlace::Former(_) => true,
                    }
            })
        };
        let is_left = |name: &String| {
            have_all_answered && !server.active.contains(name) && is_left(name, servers)
        };
        let is_not_source = |name: &String| !is_used(name, |batch| batch.from);
        let is_not_target = |name: &String| !is_used(name, |batch| batch.to);
        let mut take = |kind, names: &[String], is_remnant: &dyn Fn(&String) -> bool| {
            let names = names.iter().filter(|name| is_remnant(name)).cloned();
            found.extend(names.map(|name| ReplicationRemnant {
                kind,
                name,
                place: server.place.clone(),
            }));
        };
        take(RemnantKind::Subscription, &server.subscriptions, &is_not_target);
        take(RemnantKind::Slot, &server.slots, &is_not_source);
        take(RemnantKind::TableSlot, &server.slots, &is_left);
        take(RemnantKind::Publication, &server.publications, &is_not_source);
    }
    found.sort_by_key(|remnant| remnant.kind);
    found
}

/// True for a slot by which a table was copied to one of these servers, whose subscription is gone.
/// PostgreSQL names them by the subscription, the table and the subscriber's system. A copy that pg_basebackup has
/// made has the same system: none of the servers with it may have the subscription. One that nobody knows may use
/// the slot, so a slot that is in use is never one that is left.
fn is_left(slot: &str, servers: &[ServerReplication]) -> bool {
    let words: Vec<&str> = slot.split('_').collect();
    let ["pg", subscription, "sync", _, system] = words[..] else { return false };
    let Ok(subscription) = subscription.parse::<i64>() else { return false };
    let of_system = |server: &&ServerReplication| server.system == system;
    let mut asked = servers.iter().filter(of_system).peekable();
    asked.peek().is_some() && asked.all(|server| !server.subscribed.contains(&subscription))
}

impl Cluster {
    /// What begins the names that publication, slot and subscription of a batch have. Slots and subscriptions
    /// are seen by the whole server, which may be in other clusters, too.
    pub(crate) fn prefix(&self) -> String {
        let short: String = self.id.chars().take(8).collect();
        format!("pgrig_shard_{short}_")
    }

    /// Replication of a node.
    pub(crate) fn replication(&mut self, number: i32) -> Result<ServerReplication, Error> {
        let prefix = self.prefix();
        let row = self.data_node(number)?.query_one(REPLICATION, &[&prefix]);
        let row = row.map_err(|source| on_node("looking for replication", number, source))?;
        Ok(ServerReplication::read(RemnantPlace::Node(number), &row))
    }

    /// Connections to the servers that have left and answer, and their replication. They may be gone for good:
    /// nobody waits for one.
    pub(crate) fn former_nodes(&mut self) -> Result<Vec<(Client, ServerReplication)>, Error> {
        let failed = |source| on_proxy("reading which nodes have left", source);
        let there = "SELECT to_regclass('pgrig_shard.former_node') IS NOT NULL";
        if !self.proxy.query_one(there, &[]).map_err(failed)?.get::<_, bool>(0) {
            return Ok(Vec::new());
        }
        let former = "SELECT conninfo, number FROM pgrig_shard.former_node ORDER BY departed";
        let rows = self.proxy.query(former, &[]).map_err(failed)?;
        let limits = Limits {
            connect: FORMER_CONNECT,
            answer: Limits::of_questions().answer,
            control: self.control.clone(),
            ..Limits::of_administration()
        };
        let prefix = self.prefix();
        let answer = |row: &Row| {
            let former = FormerNode { conninfo: row.get(0), number: row.get(1) };
            let name = node_name(former.number);
            let mut client = connect_within(&former.conninfo, &name, &limits).ok()?;
            let row = client.query_one(REPLICATION, &[&prefix]).ok()?;
            let replication = ServerReplication::read(RemnantPlace::Former(former), &row);
            Some((client, replication))
        };
        Ok(rows.iter().filter_map(answer).collect())
    }
}

/// A server that has left is asked on the way.
const FORMER_CONNECT: Duration = Duration::from_secs(2);

const REPLICATION: &str = "
    SELECT (SELECT system_identifier::text FROM pg_control_system()),
           (SELECT coalesce(array_agg(oid::bigint), '{}') FROM pg_subscription),
           (SELECT coalesce(array_agg(subname::text), '{}')
            FROM pg_subscription JOIN pg_database d ON d.oid = subdbid
            WHERE datname = current_database() AND starts_with(subname::text, $1)),
           (SELECT coalesce(array_agg(slot_name::text), '{}') FROM pg_replication_slots
            WHERE database = current_database()
              AND (starts_with(slot_name::text, $1)
                   OR slot_name ~ '^pg_[0-9]+_sync_[0-9]+_[0-9]+$')),
           (SELECT coalesce(array_agg(pubname::text), '{}') FROM pg_publication
            WHERE starts_with(pubname::text, $1)),
           (SELECT coalesce(array_agg(slot_name::text), '{}') FROM pg_replication_slots WHERE active)";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    fn server(place: RemnantPlace, slots: &[&str]) -> ServerReplication {
        ServerReplication {
            place,
            system: "77".into(),
            subscribed: vec![5],
            subscriptions: words(&["p_3"]),
            slots: words(slots),
            publications: words(&["p_3", "p_x"]),
            active: Vec::new(),
        }
    }

    #[test]
    fn a_remnant_is_what_no_move_under_way_uses_where_it_is() {
        let batches = [(3, Batch { from: 0, to: 1, buckets: vec![4] })];
        let check = |place: RemnantPlace, slots: &[&str], expected: &[&str]| {
            let found = remnants(&[server(place, slots)], &batches, "p_", true);
            let said: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(said, expected);
        };
        let former = || {
            let conninfo = "host=h dbname=d".into();
            RemnantPlace::Former(FormerNode { conninfo, number: 1 })
        };
        check(RemnantPlace::Node(0), &["p_3"], &["subscription p_3 on node 0"]);
        let of_node_1 = ["slot p_3 on node 1", "publication p_3 on node 1"];
        check(RemnantPlace::Node(1), &["p_3"], &of_node_1);
        check(former(), &["p_3"], &[]);
        let expected = "slot p_2 on h:5432/d, which has left as node 1";
        check(former(), &["p_2", "p_3"], &[expected]);
        // Slots of a table's copy: in use, left, of another server, of another tool.
        let slots = ["pg_5_sync_9_77", "pg_6_sync_9_77", "pg_6_sync_9_78", "pg_6_else", "p_3"];
        let expected = ["subscription p_3 on node 0", "slot pg_6_sync_9_77 on node 0"];
        check(RemnantPlace::Node(0), &slots, &expected);
    }

    /// Servers that pg_basebackup has made from one another have one system identifier.
    #[test]
    fn a_slot_by_which_a_table_is_copied_is_left_only_if_no_server_can_be_using_it() {
        let slot = "pg_6_sync_9_77";
        let source =
            ServerReplication { system: "78".into(), ..server(RemnantPlace::Node(0), &[slot]) };
        let target = server(RemnantPlace::Node(1), &[]);
        let check = |servers: &[&ServerReplication], have_all_answered, expected: bool| {
            let servers: Vec<ServerReplication> =
                servers.iter().map(|one| (*one).clone()).collect();
            let found = remnants(&servers, &[], "q_", have_all_answered);
            let is_left = found.iter().any(|one| one.kind == RemnantKind::TableSlot);
            assert_eq!(is_left, expected, "{servers:?}");
        };
        check(&[&source, &target], true, true);
        // Nobody who answers has that system.
        check(&[&source], true, false);
        check(&[&source, &target], false, false);
        let twin = ServerReplication { subscribed: vec![6], ..server(RemnantPlace::Node(2), &[]) };
        check(&[&source, &target, &twin], true, false);
        check(&[&source, &twin, &target], true, false);
        // A server that nobody knows copies by it.
        let used = ServerReplication { active: words(&[slot]), ..source.clone() };
        check(&[&used, &target], true, false);
    }
}
