//! A copy of a stopped node's data.

use std::sync::Arc;

use crate::error::Error;
use crate::node;
use crate::remote::{RemoteLab, Verb};

/// A copy of a stopped node's data.
#[derive(Debug)]
pub struct Snapshot(pub(crate) Place);

#[derive(Debug)]
pub(crate) enum Place {
    Here(node::Snapshot),
    There(Remote),
}

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) lab: Arc<RemoteLab>,
    pub(crate) object: u32,
    pub(crate) bytes: u64,
}

impl Snapshot {
    /// How many bytes its files hold.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Place::Here(snapshot) => snapshot.bytes(),
            Place::There(remote) => remote.bytes,
        }
    }

    /// Removes it before the lab ends.
    ///
    /// # Errors
    /// The file system's.
    pub fn remove(self) -> Result<(), Error> {
        match self.0 {
            Place::Here(snapshot) => snapshot.remove(),
            Place::There(remote) => remote.lab.ask(remote.object, Verb::Drop),
        }
    }
}
