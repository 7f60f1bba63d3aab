//! Real servers for tests: each in a lab that ends with the test.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lab::{Installation, Lab, LabConfig, Node, NodeConfig, Settings};

/// The PostgreSQL of this machine; there are no tests of servers without one.
///
/// # Panics
/// Without one.
pub fn installation() -> Installation {
    lab::find::find(None).expect("PostgreSQL is installed")
}

/// A lab as isolated as this machine allows.
///
/// # Panics
/// If none can be opened.
pub fn lab() -> Lab {
    Lab::open(LabConfig::new(installation())).expect("a lab opens")
}

/// The settings of a small server, and these.
pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    let small = [("shared_buffers", "16MB"), ("max_connections", "20")];
    small.iter().chain(pairs).copied().collect()
}

/// A running server of a lab.
///
/// # Panics
/// If it does not start.
pub fn start(lab: &Lab, name: &str, config: NodeConfig) -> Node {
    let mut node = lab.node(name, config).expect("a node is made");
    node.init().expect("initdb works");
    node.start().expect("the server starts");
    node
}

/// A running server with these settings, and its lab.
///
/// # Panics
/// If it does not start.
pub fn server(settings: &[(&str, &str)]) -> (Node, Lab) {
    let lab = lab();
    let node = start(&lab, "server", NodeConfig::new(settings.iter().copied().collect()));
    (node, lab)
}

/// The one that the tests of a program share, made by the first of them; it ends when the last of them
/// has ended.
pub fn shared<T>(one: &Mutex<Weak<T>>, make: impl FnOnce() -> T) -> Arc<T> {
    let mut one = one.lock().unwrap_or_else(PoisonError::into_inner);
    one.upgrade().unwrap_or_else(|| {
        let made = Arc::new(make());
        *one = Arc::downgrade(&made);
        made
    })
}

/// The directory of a running server's Unix socket.
///
/// # Panics
/// If it does not answer.
pub fn socket_directory(node: &Node) -> PathBuf {
    let directories =
        node.value("SHOW unix_socket_directories").expect("an answer").unwrap_or_default();
    PathBuf::from(directories.split(',').next().unwrap_or_default())
}
