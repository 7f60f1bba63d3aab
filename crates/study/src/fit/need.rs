//! A line of the plan.

/// One line of the plan: what is needed, what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Of what.
    pub what: &'static str,
    /// How much is needed.
    pub needs: String,
    /// How much there is.
    pub has: String,
}
