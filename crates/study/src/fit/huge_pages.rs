//! Huge pages: what servers that try for them would use, and what the kernel has.

use lab::machine::HugePages;
use spec::Point;
use terms::grouped;

use crate::fit::estimate;
use crate::fit::need::Need;

/// The line of a plan whose servers ask for huge pages; reserving them is the administrator's.
pub(crate) fn need<'p>(points: impl Iterator<Item = &'p Point>, has: &HugePages) -> Option<Need> {
    let asking = points.filter(|point| asks(point) && has.size_bytes > 0);
    let pages = asking.map(|point| shared_bytes(point).div_ceil(has.size_bytes)).max()?;
    let (needed, free) = (grouped(pages), grouped(has.free));
    let has = match has.free >= pages {
        true => format!("{free} free"),
        false => {
            format!("{free} free; as root: sysctl vm.nr_hugepages={}", has.total - has.free + pages)
        }
    };
    Some(Need { what: "huge pages", needs: format!("{needed} to be faster"), has })
}

fn asks(point: &Point) -> bool {
    let mut settings =
        point.topology.nodes.iter().filter_map(|node| node.settings.get("huge_pages"));
    settings.any(|setting| setting != "off")
}

/// Estimate of the servers' shared memory: buffers with their descriptors, and the slots of their
/// sessions. `postgres -C shared_memory_size_in_huge_pages` (15 and later) is exact.
fn shared_bytes(point: &Point) -> u64 {
    let memory = estimate::memory(point);
    let sessions = u64::from(memory.connections) * SESSION_BYTES;
    memory.shared_bytes + memory.shared_bytes / 32 + sessions + FIXED_BYTES
}

const SESSION_BYTES: u64 = 48 << 10;
const FIXED_BYTES: u64 = 32 << 20;
