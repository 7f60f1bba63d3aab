//! What gets built: nodes, and the settings and extensions that they have.

use crate::fields::{Fields, Settings};
use crate::problem::Problems;
use crate::value::{Is, Value, is_name};

/// What gets built for a trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topology {
    /// Its name in the study.
    pub name: String,
    /// Its nodes, in the order of the file; the first one holds the data.
    pub nodes: Vec<Node>,
}

/// One server of a topology.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Its name in the topology.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Its settings: the study's, then the node's, then the variant's, the last one wins.
    pub settings: Settings,
    /// Extensions to create in its database before the data are built.
    pub extensions: Vec<String>,
}

/// The kinds of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// A PostgreSQL server.
    Postgres,
}

impl Topology {
    /// The node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// What a study that describes no topology gets: one PostgreSQL server.
    pub(crate) fn single() -> Topology {
        let primary = Node {
            name: "primary".to_owned(),
            kind: NodeKind::Postgres,
            settings: Settings::new(),
            extensions: Vec::new(),
        };
        Topology { name: "single".to_owned(), nodes: vec![primary] }
    }

    pub(crate) fn parse(name: &str, value: &Value, problems: &Problems) -> Option<Topology> {
        let fields = Fields::of("a topology", value, problems)?;
        let entries = fields.named("nodes").iter();
        let nodes: Vec<Node> = entries
            .filter_map(|entry| {
                if !is_name(&entry.key) {
                    problems.add(&entry.key_span, format!("\"{}\" cannot be a name", entry.key));
                }
                Node::parse(&entry.key, &entry.value, problems)
            })
            .collect();
        if nodes.is_empty() {
            problems.add(fields.span(), format!("topology \"{name}\" has no nodes"));
        }
        fields.finish();
        Some(Topology { name: name.to_owned(), nodes })
    }
}

impl Node {
    fn parse(name: &str, value: &Value, problems: &Problems) -> Option<Node> {
        // `primary = {}` and `primary = "postgres"` say the same.
        if let Is::Text(_) = value.is {
            let kind = crate::fields::choice("kind", value, KINDS, problems)?;
            let (settings, extensions) = Default::default();
            return Some(Node { name: name.to_owned(), kind, settings, extensions });
        }
        let fields = Fields::of("a node", value, problems)?;
        let node = Node {
            name: name.to_owned(),
            kind: fields.choice("kind", KINDS).unwrap_or(NodeKind::Postgres),
            settings: fields.settings("settings"),
            extensions: fields.texts("extensions").into_iter().map(|(name, _)| name).collect(),
        };
        fields.finish();
        Some(node)
    }
}

const KINDS: &[(&str, NodeKind)] = &[("postgres", NodeKind::Postgres)];
