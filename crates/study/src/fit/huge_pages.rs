//! Huge pages: what servers that want them use, and what the kernel has.

use lab::machine::HugePages;
use spec::{TopologyNode, TrialPoint};
use terms::{grouped, size};

use crate::fit::estimate;
use crate::fit::misfit::{PointMisfit, ResourceNeed};

/// The line of a plan whose servers ask for huge pages; reserving them is the administrator's. A group are points
/// whose servers stand at once.
pub(crate) fn need<'p>(
    groups: impl Iterator<Item = Vec<&'p TrialPoint>>,
    has: &HugePages,
) -> Option<ResourceNeed> {
    let of = |group: Vec<&TrialPoint>| group.into_iter().map(|point| pages(point, has, asks)).sum();
    let pages = groups.map(of).max().filter(|pages: &u64| *pages > 0)?;
    let (needed, free) = (grouped(pages), grouped(has.free));
    let has = match has.free >= pages {
        true => format!("{free} free"),
        false => format!("{free} free; {}", remedy(pages, has)),
    };
    Some(ResourceNeed { what: "huge pages", needs: format!("{needed} to be faster"), has })
}

/// Servers that do not start without huge pages (`huge_pages = on`), where there are too few for
/// all of these points at once.
pub(crate) fn misfit<'p>(
    points: impl IntoIterator<Item = &'p TrialPoint>,
    has: &HugePages,
) -> Option<PointMisfit> {
    let pages: u64 = points.into_iter().map(|point| pages(point, has, insists)).sum();
    (pages > has.free).then(|| PointMisfit {
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

/// Why of servers that stand at once some would get huge pages and others not; none where all or none do.
/// A server takes them if it finds enough (`huge_pages = try`, the default), so that the one that starts first would
/// be the faster one.
pub(crate) fn uneven<'p>(
    points: impl IntoIterator<Item = &'p TrialPoint>,
    has: &HugePages,
) -> Option<String> {
    let each: Vec<u64> = points.into_iter().flat_map(|point| each(point, has, takes)).collect();
    let (least, all) = (each.iter().min()?, each.iter().sum::<u64>());
    (*least <= has.free && has.free < all).then(|| {
        format!(
            "needs {} huge pages for its servers at once, or none, has {} free, which some of them would get \
             and others not; {}",
            grouped(all),
            grouped(has.free),
            remedy(all, has)
        )
    })
}

/// Memory that has long been in use is in pieces: without putting them together, the kernel may find
/// fewer pages than it is asked for.
fn remedy(pages: u64, has: &HugePages) -> String {
    let total = has.total.saturating_sub(has.free) + pages;
    format!("as root: sysctl vm.compact_memory=1 vm.nr_hugepages={total}")
}

/// Servers that use huge pages where there are some.
fn asks(node: &TopologyNode) -> bool {
    node.settings.value("huge_pages").is_some_and(|setting| !setting.eq_ignore_ascii_case("off"))
}

/// Servers that take huge pages if there are enough.
fn takes(node: &TopologyNode) -> bool {
    node.settings.value("huge_pages").is_none() || asks(node)
}

/// Servers that do not start without. Pages of another size are no part of what is counted.
fn insists(node: &TopologyNode) -> bool {
    let is_on = |setting: &str| {
        ["on", "true", "yes", "1"].iter().any(|on| setting.eq_ignore_ascii_case(on))
    };
    node.settings.value("huge_pages").is_some_and(is_on)
        && node.settings.value("huge_page_size").is_none()
}

/// Estimate of the pages that servers take: buffers with their descriptors, and the slots of their
/// sessions. `postgres -C shared_memory_size_in_huge_pages` (15 and later) is exact.
fn pages(point: &TrialPoint, has: &HugePages, wants: fn(&TopologyNode) -> bool) -> u64 {
    each(point, has, wants).sum()
}

/// The same of each server.
fn each(
    point: &TrialPoint,
    has: &HugePages,
    wants: fn(&TopologyNode) -> bool,
) -> impl Iterator<Item = u64> {
    let of = move |node: &TopologyNode| {
        let memory = estimate::memory_of(point, |name| name == node.name);
        let sessions = u64::from(memory.connections) * SESSION_BYTES;
        let bytes = memory.shared_bytes + memory.shared_bytes / 32 + sessions + FIXED_BYTES;
        // A kernel without huge pages has none of any size.
        bytes.checked_div(has.size_bytes).map_or(0, |pages| pages + 1)
    };
    let nodes = point.topology.nodes.iter().filter(move |node| node.is_postgres() && wants(node));
    nodes.map(of)
}

const SESSION_BYTES: u64 = 48 << 10;
const FIXED_BYTES: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spec::{Study, StudyProfile};

    use super::*;

    #[test]
    fn pages_that_only_one_side_would_get_are_said() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/pgbench");
        let study =
            Study::parse(&record::read_folder(&path).unwrap(), StudyProfile::Smoke).unwrap();
        let point = |huge_pages: Option<&str>| {
            let mut point = study.points[0].clone();
            point.topology.nodes.truncate(1);
            let settings = &mut point.topology.nodes[0].settings;
            settings.set("shared_buffers", "1GB");
            settings.unset("huge_pages");
            settings.extend(huge_pages.map(|value| ("huge_pages".to_owned(), value.to_owned())));
            point
        };
        let check = |sides: [Option<&str>; 2], free: u64, is_even: bool| {
            let has =
                HugePages { total: free, free, size_bytes: 2 << 20, transparent: String::new() };
            let found = uneven(&sides.map(point), &has);
            assert_eq!(found.is_none(), is_even, "{sides:?} {free} {found:?}");
        };
        check([None; 2], 0, true);
        check([None; 2], 300, true);
        check([None; 2], 700, false);
        check([None, Some("try")], 700, false);
        check([None; 2], 1_300, true);
        check([Some("off"), Some("on")], 700, true);
        check([Some("off"); 2], 700, true);
    }

    #[test]
    fn servers_that_insist_on_huge_pages_need_as_many_as_all_of_them_take() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/pgbench");
        let study =
            Study::parse(&record::read_folder(&path).unwrap(), StudyProfile::Smoke).unwrap();
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
            if let Some(PointMisfit { amount, hint: Some(hint), .. }) = found {
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
