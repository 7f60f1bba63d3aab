//! What a plan needs and the machine has, and why a point cannot run here.

/// Why a point cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointMisfit {
    /// The scarce resource; of several misfits of one resource the largest is reported.
    pub what: String,
    /// Amount of it that is needed.
    pub amount: u64,
    /// Text of the need, and the way it comes about.
    pub needs: String,
    /// Amount that there is.
    pub has: String,
    /// Next step for the user.
    pub hint: Option<String>,
}

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
