//! The topology of a trial: nodes, and the links between them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::link::NodeLink;
use crate::machine::dotted;
use crate::node::{
    NodeKind, PlproxyNode, PostgresRole, QuorumWay, References, StandbyQuorum, TopologyNode,
};
use crate::problem::Problems;
use crate::value::{Is, KeyValue, Value, is_name};

/// The topology of a trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topology {
    /// The name in the study.
    pub name: String,
    /// The nodes, in the order of the file.
    pub nodes: Vec<TopologyNode>,
    /// The links between them that are not just the machine's own.
    pub links: Vec<NodeLink>,
}

impl Topology {
    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&TopologyNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The link of that name.
    pub fn link(&self, name: &str) -> Option<&NodeLink> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The names of the nodes that study.toml calls by this name: the node's own, or all that its
    /// `count` has made of one.
    pub fn called(&self, name: &str) -> Vec<&str> {
        let named = |node: &&TopologyNode| node.name == name;
        let found: Vec<&TopologyNode> = match self.nodes.iter().find(named) {
            Some(node) => vec![node],
            None => self.nodes.iter().filter(|node| node.group == name).collect(),
        };
        found.into_iter().map(|node| node.name.as_str()).collect()
    }

    /// The node that is meant where none is named: the first one that takes writes.
    pub fn first(&self) -> Option<&TopologyNode> {
        // A subscriber has what another server publishes.
        let is_primary = |node: &&TopologyNode| {
            matches!(node.kind, NodeKind::Postgres(PostgresRole::Primary { .. }))
                && node.subscribes.is_none()
        };
        let primary = self.nodes.iter().find(is_primary);
        // Which of the machines takes writes is for their manager to say.
        primary.or_else(|| self.nodes.iter().find(|node| node.has_server()))
    }

    /// The servers that subscribe to a node, in the order of the file.
    pub fn subscribers(&self, of: &str) -> Vec<&TopologyNode> {
        let subscribes =
            |node: &&TopologyNode| node.subscribes.as_ref().is_some_and(|to| to.to == of);
        self.nodes.iter().filter(subscribes).collect()
    }

    /// The standbys of a node, in the order of the file.
    pub fn standbys(&self, of: &str) -> Vec<&TopologyNode> {
        self.nodes.iter().filter(|node| node.follows() == Some(of)).collect()
    }

    /// `synchronous_standby_names` of a primary, as its standbys' priorities ask for it; none if
    /// commits wait for no standby.
    pub fn synchronous_standby_names(&self, primary: &str) -> Option<String> {
        let names = self.sync_standbys(primary);
        let NodeKind::Postgres(PostgresRole::Primary { sync }) = &self.node(primary)?.kind else {
            return None;
        };
        if names.is_empty() {
            return None;
        }
        let quorum = sync.unwrap_or(StandbyQuorum { way: QuorumWay::First, count: 1 });
        let way = match quorum.way {
            QuorumWay::First => "FIRST",
            QuorumWay::Any => "ANY",
        };
        let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        Some(format!("{way} {} ({})", quorum.count, quoted.join(", ")))
    }

    /// The synchronous standbys of a primary, those of the highest priority first.
    pub fn sync_standbys(&self, primary: &str) -> Vec<&str> {
        let mut names: Vec<(u32, &str)> = self
            .standbys(primary)
            .into_iter()
            .filter_map(|node| match &node.kind {
                NodeKind::Postgres(PostgresRole::Standby { sync, .. }) => {
                    sync.map(|priority| (priority, node.name.as_str()))
                }
                _ => None,
            })
            .collect();
        names.sort_by_key(|(priority, _)| *priority);
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// The topology of a study that describes none: one PostgreSQL server.
    pub(crate) fn single() -> Topology {
        let nodes = vec![TopologyNode::primary("primary")];
        Topology { name: "single".to_owned(), nodes, links: Vec::new() }
    }

    pub(crate) fn parse(
        name: &str,
        value: &Value,
        folder: &StudyFolder,
        problems: &Problems,
    ) -> Option<Topology> {
        let fields = Fields::of("a topology", value, problems)?;
        let entries = fields.named("nodes");
        let mut nodes: Vec<TopologyNode> = Vec::new();
        for entry in entries {
            if !is_name(&entry.key) {
                problems.add(&entry.key_span, format!("\"{}\" cannot be a name", entry.key));
            }
            for node in TopologyNode::parse(&entry.key, &entry.value, folder, problems) {
                if nodes.iter().any(|known| known.name == node.name) {
                    let message = format!("two nodes are called \"{}\"", node.name);
                    problems.add(&entry.key_span, message);
                }
                nodes.push(node);
            }
        }
        let mut topology = Topology { name: name.to_owned(), nodes, links: Vec::new() };
        let places = Places::of(entries);
        topology.resolve(&places, problems);
        topology.check(&places, fields.span(), problems);
        for entry in fields.named("links") {
            if topology.node(&entry.key).is_some() {
                let message = format!("a node is called \"{}\" already", entry.key);
                problems.add(&entry.key_span, message);
            }
            topology.links.extend(NodeLink::parse(entry, &topology.nodes, problems));
        }
        fields.finish();
        Some(topology)
    }

    /// Replaces the names of groups that nodes refer to by those of nodes. A node of a group that
    /// refers to another group of the same size means the one of its own number.
    fn resolve(&mut self, places: &Places<'_>, problems: &Problems) {
        let whole = self.clone();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for node in &mut self.nodes {
            let number = numbers.entry(node.group.clone()).or_default();
            *number += 1;
            let group = node.group.clone();
            let one = |name: &str, key: &str| {
                let called = whole.called(name);
                let size = whole.called(&group).len().max(1);
                let found = match called[..] {
                    [] => None,
                    [only] => Some(only),
                    [..] if called.len() == whole.group_size(&group) => {
                        called.get(*number - 1).copied()
                    }
                    [..] => {
                        let message =
                            format!("\"{name}\" are {} nodes, \"{}\" {size}", called.len(), group);
                        let hint = "name one of them, or give both the same count";
                        problems.hinted(places.of_field(&group, key), message, hint);
                        return name.to_owned();
                    }
                };
                if found.is_none() {
                    let known = whole.nodes.iter().map(|node| node.name.as_str());
                    problems.unknown(places.of_field(&group, key), "node", name, known);
                }
                found.unwrap_or(name).to_owned()
            };
            for (key, names) in node.references() {
                match names {
                    References::One(name) => *name = one(name, key),
                    References::All(names) => {
                        *names = whole.all_called(names, places.of_field(&group, key), problems);
                    }
                }
            }
        }
    }

    /// All nodes that a list of names means.
    pub(crate) fn all_called(
        &self,
        names: &[String],
        place: &Range<usize>,
        problems: &Problems,
    ) -> Vec<String> {
        let mut all = Vec::new();
        for name in names {
            let called = self.called(name);
            if called.is_empty() {
                let known = self.nodes.iter().map(|node| node.group.as_str());
                problems.unknown(place, "node", name, known);
            }
            all.extend(called.into_iter().map(str::to_owned));
        }
        all
    }

    fn group_size(&self, group: &str) -> usize {
        self.nodes.iter().filter(|node| node.group == group).count()
    }

    /// Checks a topology as a whole.
    fn check(&self, places: &Places<'_>, span: &Range<usize>, problems: &Problems) {
        if self.nodes.is_empty() {
            problems.add(span, format!("topology \"{}\" has no nodes", self.name));
            return;
        }
        if self.first().is_none() {
            let hint = "add nodes.primary = {}";
            let message = format!("topology \"{}\" has no server that takes writes", self.name);
            problems.hinted(span, message, hint);
        }
        for node in &self.nodes {
            self.check_references(node, places, problems);
            self.check_quorum(node, places, problems);
            self.check_texts(node, places, problems);
        }
    }

    /// Checks that everything that the texts of a machine name is there.
    fn check_texts(&self, node: &TopologyNode, places: &Places<'_>, problems: &Problems) {
        // Other nodes have no texts of the study's.
        let Some(machine) = node.machine() else { return };
        let mut names = machine.texts().flat_map(dotted);
        if let Some(name) = names.find(|name| !self.has_name(Some(node), name)) {
            let message = format!("node {}: nothing is called {{{name}}}", node.name);
            problems.hinted(places.of_field(&node.group, "kind"), message, NAMES);
        }
    }

    /// Checks that what a text of a scenario calls by the name of a node is there; whose node it is sent to is
    /// known for a fixed one only. Braces are part of SQL, too.
    pub(crate) fn check_text(&self, text: &str, span: &Range<usize>, problems: &Problems) {
        let of_node = |name: &&str| {
            let of = name.split_once('.').map_or(*name, |(of, _)| of);
            self.node(of).is_some()
        };
        let mut names = dotted(text).filter(of_node);
        if let Some(name) = names.find(|name| !self.has_name(None, name)) {
            problems.hinted(span, format!("nothing is called {{{name}}}"), NAMES);
        }
    }

    /// True if something is called by that name in a text of a node.
    fn has_name(&self, node: Option<&TopologyNode>, name: &str) -> bool {
        let (of, what) = name.split_once('.').unwrap_or((name, ""));
        let meant = if of == "self" { node } else { self.node(of) };
        match (of, meant, what.strip_prefix("port.")) {
            ("packages", _, _) => what == "directory",
            ("postgres", _, _) => what == "bin",
            ("servers", _, _) => what == "password",
            (_, None, _) => false,
            (_, Some(meant), Some(port)) => meant
                .machine()
                .is_some_and(|machine| machine.ports.iter().any(|known| known == port)),
            (_, Some(meant), None) if meant.machine().is_some() => {
                ["address", "directory", "disk", "name"].contains(&what)
            }
            (_, Some(meant), None) => {
                let known =
                    ["address", "port", "user", "database", "password", "name", "data", "bin"];
                let is_archive = what == "archive" && meant.is_archived;
                let is_slot = what == "slot" && meant.follows().is_some();
                meant.is_postgres() && (known.contains(&what) || is_archive || is_slot)
            }
        }
    }

    fn check_references(&self, node: &TopologyNode, places: &Places<'_>, problems: &Problems) {
        let key = match (node.follows(), &node.subscribes) {
            (Some(_), _) => "of",
            (None, Some(_)) => "subscribes",
            (None, None) => "to",
        };
        let place = places.of_field(&node.group, key);
        if let NodeKind::Plproxy(proxy) = &node.kind {
            self.check_proxy(node, proxy, places, problems);
            return;
        }
        for name in node.connects_to() {
            let Some(other) = self.node(name) else { continue };
            if !other.is_postgres() {
                problems.add(place, format!("{name} is no PostgreSQL server"));
            }
            if matches!(node.kind, NodeKind::Guard(_)) && other.follows().is_some() {
                problems.add(place, format!("a guard watches a primary; {name} is a standby"));
            }
            if node.subscribes.is_some() && other.follows().is_some() {
                let message = format!("{} subscribes to standby {name}", node.name);
                problems.hinted(place, message, "subscribe to the server that the standby follows");
            }
        }
        let mut seen = vec![node.name.as_str()];
        let mut at = node;
        while let Some(next) = at.upstream().and_then(|name| self.node(name)) {
            if seen.contains(&next.name.as_str()) {
                problems.add(place, format!("{} follows itself", node.name));
                return;
            }
            seen.push(&next.name);
            at = next;
        }
        let cascades = node.follows().and_then(|name| self.node(name)?.follows());
        if let NodeKind::Postgres(PostgresRole::Standby { of, sync: Some(_) }) = &node.kind
            && cascades.is_some()
        {
            let message = format!("commits cannot wait for a standby of standby {of}");
            problems.add(places.of_field(&node.group, "sync"), message);
        }
    }

    /// A proxy's data are on servers that take writes; poolers before them pair up with them.
    fn check_proxy(
        &self,
        node: &TopologyNode,
        proxy: &PlproxyNode,
        places: &Places<'_>,
        problems: &Problems,
    ) {
        let is_primary = |node: &TopologyNode| {
            matches!(node.kind, NodeKind::Postgres(PostgresRole::Primary { .. }))
        };
        for name in &proxy.to {
            if self.node(name).is_some_and(|other| !is_primary(other)) {
                let message = format!("{name} is no PostgreSQL server that takes writes");
                problems.add(places.of_field(&node.group, "to"), message);
            }
        }
        if let Some(partitions) = proxy.partitions {
            let place = places.of_field(&node.group, "partitions");
            if (partitions as usize) < proxy.to.len() {
                let message = format!("{partitions} partitions on {} servers", proxy.to.len());
                problems.hinted(place, message, "at least one for each server of `to`");
            }
            if !proxy.through.is_empty() {
                let message = "a proxy with partitions of its own goes through no poolers";
                problems.add(place, message);
            }
        }
        let goes_to = |name: &String| match &self.node(name)?.kind {
            NodeKind::Pgbouncer(pooler) => Some(pooler.to.clone()),
            _ => None,
        };
        let behind: Vec<Option<String>> = proxy.through.iter().map(goes_to).collect();
        let pairs = behind.iter().flatten().eq(&proxy.to) && behind.len() == proxy.to.len();
        if !proxy.through.is_empty() && !pairs {
            let message =
                format!("these are not the poolers of the servers that {} is to", node.name);
            let hint = "one pooler for each server of `to`, in the same order";
            problems.hinted(places.of_field(&node.group, "through"), message, hint);
        }
    }

    fn check_quorum(&self, node: &TopologyNode, places: &Places<'_>, problems: &Problems) {
        let NodeKind::Postgres(PostgresRole::Primary { sync: Some(quorum) }) = &node.kind else {
            // Commits of other nodes wait for nobody.
            return;
        };
        let there = self.sync_standbys(&node.name).len();
        if quorum.count as usize > there {
            let message = format!(
                "commits would wait for {} synchronous standbys, {} has {there}",
                quorum.count, node.name
            );
            let hint = "give the standbys a priority: sync = 1";
            problems.hinted(places.of_field(&node.group, "sync"), message, hint);
        }
    }
}

/// Positions of nodes in the file.
struct Places<'t> {
    entries: &'t [KeyValue],
}

impl<'t> Places<'t> {
    fn of(entries: &'t [KeyValue]) -> Places<'t> {
        Places { entries }
    }

    /// A field of a node; the node where it has none.
    fn of_field(&self, group: &str, key: &str) -> &'t Range<usize> {
        static NOWHERE: Range<usize> = 0..0;
        let Some(entry) = self.entries.iter().find(|entry| entry.key == group) else {
            return &NOWHERE;
        };
        match &entry.value.is {
            Is::Table(table) => match table.find(key) {
                Some(field) => &field.value.span,
                None => &entry.key_span,
            },
            _ => &entry.key_span,
        }
    }
}

/// The names that texts of nodes may use.
const NAMES: &str = "there is {NODE.address}, {NODE.directory}, {NODE.disk}, {NODE.name}, {NODE.port.NAME}, {self.…}, \
                     {servers.password}, {packages.directory} and {postgres.bin}; of a server of pgrig's \
                     {NODE.address}, {NODE.port}, {NODE.user}, {NODE.database}, {NODE.password}, {NODE.data}, {NODE.bin} \
                     and {NODE.archive}; of a standby {NODE.slot}";
