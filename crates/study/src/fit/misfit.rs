//! The reason why a point cannot run here.

/// The reason why a point cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Of what there is too little; of several misfits over the same thing the largest says all.
    pub what: String,
    /// How much of it is needed.
    pub amount: u64,
    /// What it needs, with how that comes about.
    pub needs: String,
    /// What there is.
    pub has: String,
    /// What to do.
    pub hint: Option<String>,
}
