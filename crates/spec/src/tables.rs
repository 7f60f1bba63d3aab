//! The tables of a study's file, the profile's values chosen.

use crate::defaults::Defaults;
use crate::folder::Folder;
use crate::problem::Problems;
use crate::profile::Profile;
use crate::value::{Entry, Value};

/// The tables of a study that points are made of, the profile's values chosen.
pub(crate) struct Tables<'t> {
    pub(crate) profile: Profile,
    pub(crate) folder: &'t Folder,
    pub(crate) problems: &'t Problems,
    pub(crate) settings: Option<&'t Value>,
    pub(crate) data: Option<&'t Value>,
    pub(crate) topologies: &'t [Entry],
    pub(crate) variants: &'t [Entry],
    pub(crate) workloads: &'t [Entry],
    pub(crate) scenarios: &'t [Entry],
    pub(crate) defaults: Defaults,
}
