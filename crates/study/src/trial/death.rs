//! Times at which a node's processes were ended.

use record::Moment;

/// The end of a node's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeDeath {
    pub(crate) node: String,
    /// True if it was killed or lost its power, rather than being stopped.
    pub(crate) is_sudden: bool,
    /// Time at which ending them began.
    pub(crate) from: Moment,
    /// Time at which they were gone for certain.
    pub(crate) until: Moment,
    /// Time at which starting it again began, if it was started.
    pub(crate) restarted: Option<Moment>,
    /// Time at which it ran again, if it did.
    pub(crate) back: Option<Moment>,
    /// Its power was cut: what its disk has afterwards is what the trial is about.
    pub(crate) is_power_cut: bool,
}
