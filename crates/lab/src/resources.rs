//! What a machine has for servers, and what they can be made of there.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::find::{self, PgBouncer};
use crate::machine::{self, Disk, Machine};

/// What a machine has for servers, and what they can be made of there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Resources {
    /// Memory that can be used without swapping, in bytes.
    pub memory_bytes: u64,
    /// Room on the disk of the lab, in bytes.
    pub disk_bytes: u64,
    /// Whether the rig runs as root there.
    pub is_root: bool,
    /// Every PgBouncer that is installed, the newest first.
    pub pgbouncers: Vec<PgBouncer>,
}

impl Resources {
    /// Of this machine, with a lab in `directory`.
    ///
    /// # Errors
    /// When the file system cannot be asked.
    pub fn here(directory: &Path) -> Result<Resources, Error> {
        Ok(Resources {
            memory_bytes: Machine::here().memory.available_bytes,
            disk_bytes: Disk::at(directory)?.free_bytes,
            is_root: machine::is_root(),
            pgbouncers: find::pgbouncers(),
        })
    }
}
