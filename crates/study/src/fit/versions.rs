//! Points that need a later major version of PostgreSQL than their servers have.

use spec::{MachineRequirement, TopologyNode, TrialPoint};

use crate::fit::misfit::PointMisfit;

/// Why servers are too old for a point; none if they are not. `major` gives the major version of a server, none where it
/// is not known.
pub(crate) fn misfit(
    point: &TrialPoint,
    major: impl Fn(&TopologyNode) -> Option<u32>,
) -> Option<PointMisfit> {
    let servers = point.topology.nodes.iter().filter(|node| node.has_server());
    let lacks = |node: &TopologyNode| {
        let (has, (since, what)) = (major(node)?, needed(point, node)?);
        (since > has).then(|| PointMisfit {
            what: "PostgreSQL".to_owned(),
            amount: u64::from(since),
            needs: format!("PostgreSQL {since} or later{what}"),
            has: format!("PostgreSQL {has} for {}", node.name),
            hint: Some("name the programs of a later version: --pg-bin FOLDER".to_owned()),
        })
    };
    servers.filter_map(lacks).max_by_key(|misfit| misfit.amount)
}

/// The oldest major version that will do for a server of a point, and what needs it, for a sentence.
fn needed(point: &TrialPoint, node: &TopologyNode) -> Option<(u32, String)> {
    let of_point = point.needs.iter().filter_map(|one| match one {
        MachineRequirement::PostgresSince(since) => Some((*since, String::new())),
        MachineRequirement::Root => None,
    });
    let options = node.subscribes.iter().flat_map(|subscription| subscription.options());
    let options = options.map(|(option, since)| (since, format!(" for {option}")));
    of_point.chain(options).max_by_key(|(since, _)| *since)
}

#[cfg(test)]
mod tests {
    use spec::{Study, StudyFolder, StudyProfile};

    use super::*;

    const STUDY: &str = r#"
question = "?"
[topologies.two.nodes]
old = {}
new = { subscribes = { to = "old" } }
[topologies.failover.nodes]
old = {}
new = { subscribes = { to = "old", failover = true } }
[variants.plain]
topology = "two"
[variants.kept]
topology = "failover"
[variants.later]
topology = "two"
needs = "postgresql 18"
[workloads.reads]
builtin = "select-only"
[scenarios.any]
run = ["reads"]
[scenarios.converted]
run = ["reads"]
needs = "postgresql 17"
"#;

    #[test]
    fn a_point_is_left_out_where_a_server_is_too_old_for_it() {
        let files = [("study.toml".to_owned(), STUDY.to_owned())].into();
        let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let study = Study::parse(&folder, StudyProfile::Smoke).unwrap();
        let check = |name: &str, [old, new]: [u32; 2], expected: Option<&str>| {
            let point = study.points.iter().find(|point| point.name.to_string() == name).unwrap();
            let found = misfit(point, |node| Some(if node.name == "old" { old } else { new }));
            let found = found.map(|misfit| format!("{}, has {}", misfit.needs, misfit.has));
            assert_eq!(found.as_deref(), expected, "{name} on {old} and {new}");
        };
        check("plain/any", [13, 13], None);
        let of_new = "PostgreSQL 17 or later for failover = true, has PostgreSQL 16 for new";
        check("kept/any", [16, 16], Some(of_new));
        check("kept/any", [16, 17], None);
        check("plain/converted", [17, 17], None);
        let of_old = "PostgreSQL 17 or later, has PostgreSQL 15 for old";
        check("plain/converted", [15, 17], Some(of_old));
        // The later one of two needs counts.
        let both = "PostgreSQL 18 or later, has PostgreSQL 17 for new";
        check("later/converted", [18, 17], Some(both));
        check("later/converted", [18, 18], None);
    }
}
