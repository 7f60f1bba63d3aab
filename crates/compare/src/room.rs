//! The check that two servers fit on this machine.

use std::path::Path;

use lab::Settings;
use lab::estimate::{BACKEND_BYTES, CLUSTER_BYTES, bytes_of_setting};
use lab::machine::{Disk, Memory};

use crate::error::Error;
use crate::side::Data;

/// The WAL that a load leaves for a while.
const WAL_BYTES: u64 = 448 << 20;

/// Refuses where the shared buffers of both servers and their backends exceed the memory that is
/// free.
pub(crate) fn memory(settings: &[Settings; 2], clients: u32, has: Memory) -> Result<(), Error> {
    let bytes = |text: &str| bytes_of_setting(text, 8192);
    let buffers =
        settings.iter().map(|one| one.value("shared_buffers").and_then(bytes).unwrap_or(0));
    let needs = buffers.sum::<u64>() + 2 * u64::from(clients) * BACKEND_BYTES;
    match needs > has.available_bytes {
        true => Err(Error::TooLittle { what: "memory", needs, has: has.available_bytes }),
        false => Ok(()),
    }
}

/// Refuses where so many data directories cannot fit on the disk below `place`.
pub(crate) fn disk(place: &Path, data: &Data, sides: u64) -> Result<(), Error> {
    let each = match data {
        Data::Pgbench(scale) => pgbench::table_bytes(*scale),
        // It is not known before a copy is made.
        Data::File(_) => 0,
    };
    free(place, sides * (each + CLUSTER_BYTES + WAL_BYTES))
}

/// Refuses where a second copy of data of this size cannot fit.
pub(crate) fn copy(place: &Path, bytes: u64) -> Result<(), Error> {
    free(place, bytes + CLUSTER_BYTES + WAL_BYTES)
}

fn free(place: &Path, needs: u64) -> Result<(), Error> {
    let has = Disk::at(place)?.free_bytes;
    match needs > has {
        true => Err(Error::TooLittle { what: "disk space", needs, has }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_need_the_memory_of_both() {
        let check = |buffers: [&str; 2], clients, fits| {
            let settings = buffers.map(|size| [("shared_buffers", size)].into_iter().collect());
            let has = Memory { total_bytes: 8 << 30, available_bytes: 4 << 30, swap_bytes: 0 };
            assert_eq!(memory(&settings, clients, has).is_ok(), fits, "{buffers:?}, {clients}");
        };
        check(["1GB", "1GB"], 100, true);
        check(["1GB", "4GB"], 1, false);
        check(["1GB", "1GB"], 1_000, false);
    }
}
