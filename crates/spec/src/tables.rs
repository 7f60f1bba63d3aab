//! The tables of a study's file, the profile's values chosen.

use crate::defaults::Defaults;
use crate::folder::StudyFolder;
use crate::problem::Problems;
use crate::profile::StudyProfile;
use crate::value::{KeyValue, Value};

/// The tables of a study that points are made of, the profile's values chosen.
pub(crate) struct Tables<'t> {
    pub(crate) profile: StudyProfile,
    pub(crate) folder: &'t StudyFolder,
    pub(crate) problems: &'t Problems,
    pub(crate) settings: Option<&'t Value>,
    pub(crate) data: Option<&'t Value>,
    pub(crate) topologies: &'t [KeyValue],
    pub(crate) variants: &'t [KeyValue],
    pub(crate) workloads: &'t [KeyValue],
    pub(crate) scenarios: &'t [KeyValue],
    pub(crate) defaults: Defaults,
}
