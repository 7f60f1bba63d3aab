//! The lines between a rig and its lab on another host.
//!
//! The first line of the rig is an [`Opening`]; each other one is an [`Ask`]. The lab answers each by
//! a [`Reply`] of the same number; that of the opening is 0.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use server::Password;

use crate::answer::Answer;
use crate::remote::failure::Failure;
use crate::verb::Verb;

/// The lab that is wanted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    /// The folder of PostgreSQL's programs; the first one found without it.
    pub(crate) pg_bin: Option<PathBuf>,
    /// The superuser's; one of the lab's own without it.
    #[serde(with = "crate::carried_password")]
    pub(crate) password: Option<Password>,
}

/// A question to an object of the lab, or to the lab itself (0).
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) number: u64,
    pub(crate) object: u32,
    pub(crate) verb: Verb,
}

/// The reply to the question of that number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) number: u64,
    pub(crate) result: Result<Answer, Failure>,
}
