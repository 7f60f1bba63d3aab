//! A line of the plan.

/// One line of the plan: what is needed, and what the machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceNeed {
    /// Of what.
    pub what: &'static str,
    /// Amount that is needed.
    pub needs: String,
    /// Amount that there is.
    pub has: String,
}
