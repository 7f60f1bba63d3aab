//! The search for the highest rate, or the most clients, at which a goal holds: what is asked for,
//! what is tried next, and what was tried.

pub(crate) mod capacity;
pub(crate) mod curve;
pub(crate) mod goal;
pub(crate) mod pools;
pub(crate) mod steps;
