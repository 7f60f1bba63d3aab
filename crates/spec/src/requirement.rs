//! What a machine must have for a point of a study, besides what the point's nodes ask for.

use crate::fields::{self, Fields};

/// Something that a machine must have; a point without it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineRequirement {
    /// That the rig runs as root.
    Root,
    /// That every PostgreSQL server of the point is of this major version or of a later one.
    PostgresSince(u32),
}

impl MachineRequirement {
    /// `needs = ["root", "postgresql 17"]`, of a variant or of a scenario.
    pub(crate) fn list(fields: &Fields<'_>) -> Vec<MachineRequirement> {
        let values = fields.list("needs").iter();
        values
            .filter_map(|value| fields::choice("needs", value, REQUIREMENTS, fields.problems))
            .collect()
    }
}

/// The rig drives servers from version 13 on.
const REQUIREMENTS: &[(&str, MachineRequirement)] = &[
    ("root", MachineRequirement::Root),
    ("postgresql 14", MachineRequirement::PostgresSince(14)),
    ("postgresql 15", MachineRequirement::PostgresSince(15)),
    ("postgresql 16", MachineRequirement::PostgresSince(16)),
    ("postgresql 17", MachineRequirement::PostgresSince(17)),
    ("postgresql 18", MachineRequirement::PostgresSince(18)),
    ("postgresql 19", MachineRequirement::PostgresSince(19)),
];
