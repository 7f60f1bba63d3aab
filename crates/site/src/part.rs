//! What runs in a topology, with the verbs that a timeline has for it.

use lab::{Error, Exit, Node, Pooler, Process, StopMode};

/// A server, a pooler or another program.
#[derive(Debug)]
pub enum Part<'p> {
    /// A PostgreSQL server.
    Node(&'p mut Node),
    /// A PgBouncer.
    Pooler(&'p mut Pooler),
    /// Another program, such as a guard.
    Process(&'p mut Process),
}

impl Part<'_> {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// The lab's.
    pub fn start(&mut self) -> Result<(), Error> {
        match self {
            Part::Node(node) => node.start(),
            Part::Pooler(pooler) => pooler.start(),
            Part::Process(process) => process.start(),
        }
    }

    /// Stops it.
    ///
    /// # Errors
    /// The lab's.
    pub fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        match self {
            Part::Node(node) => node.stop(mode),
            Part::Pooler(pooler) => pooler.stop(mode),
            Part::Process(process) => process.stop(mode),
        }
    }

    /// Kills all its processes; returns how many.
    ///
    /// # Errors
    /// The lab's.
    pub fn kill9(&mut self) -> Result<usize, Error> {
        match self {
            Part::Node(node) => node.kill9(),
            Part::Pooler(pooler) => pooler.kill9(),
            Part::Process(process) => process.kill9(),
        }
    }

    /// Stops all its processes in their tracks; returns how many.
    ///
    /// # Errors
    /// The lab's.
    pub fn pause(&mut self) -> Result<usize, Error> {
        match self {
            Part::Node(node) => node.pause(),
            Part::Pooler(pooler) => pooler.pause(),
            Part::Process(process) => process.pause(),
        }
    }

    /// Lets its processes go on; returns how many.
    ///
    /// # Errors
    /// The lab's.
    pub fn resume(&mut self) -> Result<usize, Error> {
        match self {
            Part::Node(node) => node.resume(),
            Part::Pooler(pooler) => pooler.resume(),
            Part::Process(process) => process.resume(),
        }
    }
}
