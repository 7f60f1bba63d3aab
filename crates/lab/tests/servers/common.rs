//! What the tests on a real PostgreSQL share.

use lab::{Lab, Node, NodeConfig};
pub(crate) use testing::servers::{installation, lab as open, settings};

/// A node that is initialised.
pub(crate) fn node(lab: &Lab, name: &str, pairs: &[(&str, &str)]) -> Node {
    let mut node = lab.node(name, NodeConfig::new(settings(pairs))).unwrap();
    node.init().unwrap();
    node
}
