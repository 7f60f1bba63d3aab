//! Huge pages: what servers that want them use, and what the kernel has.

use lab::machine::HugePages;
use spec::{Node, Point};
use terms::{grouped, size};

use crate::fit::estimate;
use crate::fit::misfit::Misfit;
use crate::fit::need::Need;

/// The line of a plan whose servers ask for huge pages; reserving them is the administrator's.
pub(crate) fn need<'p>(points: impl Iterator<Item = &'p Point>, has: &HugePages) -> Option<Need> {
    let pages = points.map(|point| pages(point, has, asks)).max().filter(|pages| *pages > 0)?;
    let (needed, free) = (grouped(pages), grouped(has.free));
    let has = match has.free >= pages {
        true => format!("{free} free"),
        false => format!("{free} free; {}", remedy(pages, has)),
    };
    Some(Need { what: "huge pages", needs: format!("{needed} to be faster"), has })
}

/// Servers that do not start without huge pages (`huge_pages = on`), where there are too few for
/// all of these points at once.
pub(crate) fn misfit<'p>(
    points: impl IntoIterator<Item = &'p Point>,
    has: &HugePages,
) -> Option<Misfit> {
    let pages: u64 = points.into_iter().map(|point| pages(point, has, insists)).sum();
    (pages > has.free).then(|| Misfit {
        what: "huge pages".to_owned(),
        amount: pages,
        needs: format!(
            "{} huge pages of {} for huge_pages = on",
            grouped(pages),
            size(has.size_bytes)
        ),
        has: format!("{} free", grouped(has.free)),
        hint: Some(format!("{}; or use smaller shared_buffers", remedy(pages, has))),
    })
}

/// Memory that has long been in use is in pieces: without putting them together, the kernel may find
/// fewer pages than it is asked for.
fn remedy(pages: u64, has: &HugePages) -> String {
    let total = has.total.saturating_sub(has.free) + pages;
    format!("as root: sysctl vm.compact_memory=1 vm.nr_hugepages={total}")
}

/// Servers that use huge pages where there are some.
fn asks(node: &Node) -> bool {
    node.settings.get("huge_pages").is_some_and(|setting| !setting.eq_ignore_ascii_case("off"))
}

/// Servers that do not start without. Pages of another size are no part of what is counted.
fn insists(node: &Node) -> bool {
    let is_on = |setting: &str| {
        ["on", "true", "yes", "1"].iter().any(|on| setting.eq_ignore_ascii_case(on))
    };
    node.settings.get("huge_pages").is_some_and(|setting| is_on(setting))
        && !node.settings.contains_key("huge_page_size")
}

/// Estimate of the pages that servers take: buffers with their descriptors, and the slots of their
/// sessions. `postgres -C shared_memory_size_in_huge_pages` (15 and later) is exact.
fn pages(point: &Point, has: &HugePages, wants: fn(&Node) -> bool) -> u64 {
    let of = |node: &Node| {
        let memory = estimate::memory_of(point, |name| name == node.name);
        let sessions = u64::from(memory.connections) * SESSION_BYTES;
        let bytes = memory.shared_bytes + memory.shared_bytes / 32 + sessions + FIXED_BYTES;
        bytes.checked_div(has.size_bytes).map_or(0, |pages| pages + 1)
    };
    let nodes = point.topology.nodes.iter().filter(|node| node.is_postgres() && wants(node));
    nodes.map(of).sum()
}

const SESSION_BYTES: u64 = 48 << 10;
const FIXED_BYTES: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spec::{Profile, Study};

    use super::*;

    #[test]
    fn servers_that_insist_on_huge_pages_need_as_many_as_all_of_them_take() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/pgbench");
        let study = Study::parse(&record::read_folder(&path).unwrap(), Profile::Smoke).unwrap();
        let check = |settings: &[(&str, &str)], free: u64, is_enough: bool| {
            let mut point = study.points[0].clone();
            point.topology.nodes.truncate(1);
            let given = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            point.topology.nodes[0].settings.extend(given);
            let points = [point.clone(), point];
            let transparent = "never".to_owned();
            let has = HugePages { total: free, free, size_bytes: 2 << 20, transparent };
            let found = misfit(&points, &has);
            assert_eq!(found.is_none(), is_enough, "{found:?}");
            if let Some(Misfit { amount, hint: Some(hint), .. }) = found {
                assert!((1_088..1_300).contains(&amount), "{amount}");
                assert!(hint.contains(&format!("vm.nr_hugepages={amount}")), "{hint}");
            }
        };
        let one_gb = |huge_pages| [("shared_buffers", "1GB"), ("huge_pages", huge_pages)];
        check(&one_gb("on"), 0, false);
        check(&one_gb("ON"), 900, false);
        check(&one_gb("on"), 1_300, true);
        check(&one_gb("try"), 0, true);
        check(&[&one_gb("on")[..], &[("huge_page_size", "1GB")]].concat(), 0, true);
    }
}
