//! When a node's processes were ended.

use record::Moment;

/// The end of a node's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) node: String,
    /// Whether it was killed or lost its power, rather than being stopped.
    pub(crate) is_sudden: bool,
    /// When it was begun to end them.
    pub(crate) from: Moment,
    /// When they were gone for certain.
    pub(crate) until: Moment,
    /// When it was begun to start it again, if it was.
    pub(crate) restarted: Option<Moment>,
    /// When it ran again, if it did.
    pub(crate) back: Option<Moment>,
    /// Its power was cut: what its disk has afterwards is what the trial is about.
    pub(crate) is_power_cut: bool,
}
