//! Whatever runs in a topology, with the verbs that a timeline has for it.

use lab::{Error, Exit, Node, Pooler, Process, StopMode};

/// A server, a pooler or another program.
pub(crate) enum Part<'p> {
    Node(&'p mut Node),
    Pooler(&'p mut Pooler),
    Process(&'p mut Process),
}

impl Part<'_> {
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        match self {
            Part::Node(node) => node.start(),
            Part::Pooler(pooler) => pooler.start(),
            Part::Process(process) => process.start(),
        }
    }

    pub(crate) fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        match self {
            Part::Node(node) => node.stop(mode),
            Part::Pooler(pooler) => pooler.stop(mode),
            Part::Process(process) => process.stop(mode),
        }
    }

    /// Kills all its processes; returns how many.
    pub(crate) fn kill9(&mut self) -> Result<usize, Error> {
        match self {
            Part::Node(node) => node.kill9(),
            Part::Pooler(pooler) => pooler.kill9(),
            Part::Process(process) => process.kill9(),
        }
    }

    /// Stops all its processes in their tracks; returns how many.
    pub(crate) fn pause(&mut self) -> Result<usize, Error> {
        match self {
            Part::Node(node) => node.pause(),
            Part::Pooler(pooler) => pooler.pause(),
            Part::Process(process) => process.pause(),
        }
    }

    /// Lets its processes go on; returns how many.
    pub(crate) fn resume(&mut self) -> Result<usize, Error> {
        match self {
            Part::Node(node) => node.resume(),
            Part::Pooler(pooler) => pooler.resume(),
            Part::Process(process) => process.resume(),
        }
    }
}
