//! The resources of a machine for servers.

use std::path::{Path, PathBuf};

use fault::disk::{self, DiskProgram, PowerCutMethod};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::find::{self, PgBouncer};
use crate::machine::{self, Disk, Machine};

/// The resources of a machine for servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Resources {
    /// Memory that can be used without swapping, in bytes.
    pub memory_bytes: u64,
    /// Room on the disk of the lab, in bytes.
    pub disk_bytes: u64,
    /// True if the rig runs as root there.
    pub is_root: bool,
    /// Every PgBouncer that is installed, the newest first.
    pub pgbouncers: Vec<PgBouncer>,
    /// The reason why there can be no disk whose file system stops, if there cannot.
    pub no_file_system_cut: Option<String>,
    /// The reason why there can be no disk whose device forgets, if there cannot.
    pub no_block_cut: Option<String>,
    /// The reason why I/O cannot be limited, if it cannot.
    pub no_io_limits: Option<String>,
    /// The reason why memory cannot be limited, if it cannot.
    pub no_memory_limits: Option<String>,
}

impl Resources {
    /// Of this machine, with a lab in `directory`.
    pub fn here(directory: &Path) -> Result<Resources, Error> {
        let block = PowerCutMethod::Block {
            sector_bytes: 512,
            is_lying: false,
            log_bytes: None,
            program: DiskProgram { path: PathBuf::new(), args: Vec::new() },
        };
        let lacks =
            |method: &PowerCutMethod| disk::check(method).err().map(|error| error.to_string());
        Ok(Resources {
            no_file_system_cut: lacks(&PowerCutMethod::FileSystem),
            no_block_cut: lacks(&block),
            no_io_limits: machine::throttles(directory).err().map(|error| error.to_string()),
            no_memory_limits: machine::memory_limits(directory)
                .err()
                .map(|error| error.to_string()),
            memory_bytes: Machine::here().memory.available_bytes,
            disk_bytes: Disk::at(directory)?.free_bytes,
            is_root: machine::is_root(),
            pgbouncers: find::pgbouncers(),
        })
    }
}
