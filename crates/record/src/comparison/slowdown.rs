//! Why a script is slower on one side: the plans that both servers executed, and the settings that make it fast again.

use serde::{Deserialize, Serialize};

/// One execution of a script on both sides with the same values, and what explains the difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowdownReason {
    /// The statement of the script that takes most of the additional time on B, with the names of its variables in
    /// place of their values.
    pub statement: String,
    /// The plan that A executed, then B's.
    pub plans: [ExecutedPlan; 2],
    /// The first node in which the plans differ, of A and of B; none where they have the same nodes. An empty text
    /// stands for a node that a side does not have.
    pub differs: Option<[String; 2]>,
    /// The lowest node of B's plan with a wrong estimate.
    pub estimate: Option<WrongEstimate>,
    /// The changes that were tried on B.
    pub tried: Vec<String>,
    /// Those of them with which B needs half of the additional time at most, the shortest time first.
    pub cures: Vec<SlowdownCure>,
}

/// A plan that a server has executed, or that it would execute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutedPlan {
    /// Planning and execution in milliseconds; none where the statement was only planned.
    pub ms: Option<f64>,
    /// Blocks that were found in shared buffers or read; none where the statement was only planned.
    pub blocks: Option<u64>,
    /// The nodes from the top, each before its children.
    pub nodes: Vec<PlanNode>,
}

/// A node of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanNode {
    /// Nodes above it.
    pub depth: u32,
    /// The type, its index and its table, such as `Index Scan using t_pkey on t`.
    pub node: String,
    /// Rows that the planner expects of each execution of the node.
    pub expected_rows: f64,
    /// Rows that each execution gave on average; none where the node was not executed.
    pub rows: Option<f64>,
}

/// A node whose number of rows the planner did not foresee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongEstimate {
    /// The node.
    pub node: String,
    /// Rows that the planner expected.
    pub expected_rows: f64,
    /// Rows that there were.
    pub rows: f64,
}

/// A setting or a command with which B is faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowdownCure {
    /// What was done, such as `jit = off` or `ANALYZE`.
    pub change: String,
    /// The time of B with it, in milliseconds.
    pub ms: f64,
}

/// An estimate is wrong from this factor on.
const WRONG_FACTOR: f64 = 10.0;

/// Fewer rows than this do not matter, whatever was expected.
const ROWS_MIN: f64 = 100.0;

impl PlanNode {
    /// The factor by which the estimate is wrong, 1 at least; 1 where the node was not executed or has few rows.
    fn estimate_factor(&self) -> f64 {
        let Some(rows) = self.rows else { return 1.0 };
        if rows.max(self.expected_rows) < ROWS_MIN {
            return 1.0;
        }
        let [few, many] = [rows.min(self.expected_rows), rows.max(self.expected_rows)];
        many.max(1.0) / few.max(1.0)
    }
}

impl ExecutedPlan {
    /// The first node in which this plan differs from B's.
    #[must_use]
    pub fn difference(&self, b: &ExecutedPlan) -> Option<[String; 2]> {
        let length = self.nodes.len().max(b.nodes.len());
        (0..length).find_map(|at| {
            let [one, other] = [self, b].map(|plan| plan.nodes.get(at));
            let key = |node: &PlanNode| (node.depth, node.node.clone());
            let is_same = one.map(key) == other.map(key);
            let name =
                |node: Option<&PlanNode>| node.map_or_else(String::new, |it| it.node.clone());
            (!is_same).then(|| [name(one), name(other)])
        })
    }

    /// The node with the most wrong estimate among those without a wrong one below them: estimates above follow from
    /// those below.
    #[must_use]
    pub fn wrong_estimate(&self) -> Option<WrongEstimate> {
        let is_wrong = |node: &&PlanNode| node.estimate_factor() >= WRONG_FACTOR;
        let is_lowest = |at: usize| {
            let below =
                self.nodes[at + 1..].iter().take_while(|one| one.depth > self.nodes[at].depth);
            !below.into_iter().any(|one| is_wrong(&one))
        };
        let wrong =
            self.nodes.iter().enumerate().filter(|(at, node)| is_wrong(node) && is_lowest(*at));
        let (_, node) = wrong.max_by(|(_, one), (_, other)| {
            one.estimate_factor().total_cmp(&other.estimate_factor())
        })?;
        let (expected_rows, rows) = (node.expected_rows, node.rows?);
        Some(WrongEstimate { node: node.node.clone(), expected_rows, rows })
    }
}

impl SlowdownReason {
    /// For people, in one sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        let [a, b] = &self.plans;
        match &self.differs {
            Some([of_a, of_b]) => {
                let named = |node: &str| {
                    if node.is_empty() { "no node".to_owned() } else { node.to_owned() }
                };
                parts.push(format!("{} on B where A has {}", named(of_b), named(of_a)));
            }
            None => {
                let blocks = [a, b].map(|plan| plan.blocks);
                parts.push(match blocks {
                    [Some(a), Some(b)] if b > a + a / 2 => {
                        format!(
                            "the same plan, which reads {} blocks on B and {} on A",
                            count(b),
                            count(a)
                        )
                    }
                    _ => "the same plan on both sides".to_owned(),
                });
            }
        }
        if let Some(WrongEstimate { node, expected_rows, rows }) = &self.estimate {
            let [expected, rows] = [*expected_rows, *rows].map(terms::figure);
            parts.push(format!("{node} gives {rows} rows on B where {expected} were expected"));
        }
        parts.push(match (self.cures.first(), b.ms) {
            (Some(SlowdownCure { change, ms }), Some(before)) => {
                format!(
                    "with {change} it takes {} ms in place of {}",
                    terms::figure(*ms),
                    terms::figure(before)
                )
            }
            (Some(SlowdownCure { change, ms }), None) => {
                format!("with {change} it takes {} ms", terms::figure(*ms))
            }
            (None, _) => "no setting that was tried makes it faster".to_owned(),
        });
        // An interrupted search has no answer.
        if self.tried.is_empty() {
            parts.pop();
        }
        parts.join("; ")
    }
}

fn count(number: u64) -> String {
    terms::figure(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(depth: u32, node: &str, expected_rows: f64, rows: f64) -> PlanNode {
        PlanNode { depth, node: node.to_owned(), expected_rows, rows: Some(rows) }
    }

    fn plan(ms: f64, nodes: &[PlanNode]) -> ExecutedPlan {
        ExecutedPlan { ms: Some(ms), blocks: Some(100), nodes: nodes.to_vec() }
    }

    #[test]
    fn the_reason_names_the_node_the_estimate_and_the_cure() {
        let check = |a: &[PlanNode], b: &[PlanNode], cures: &[(&str, f64)], expected: &str| {
            let plans = [plan(1.0, a), plan(50.0, b)];
            let cures = cures
                .iter()
                .map(|(change, ms)| SlowdownCure { change: (*change).to_owned(), ms: *ms });
            let reason = SlowdownReason {
                statement: "SELECT 1".to_owned(),
                differs: plans[0].difference(&plans[1]),
                estimate: plans[1].wrong_estimate(),
                plans,
                tried: vec!["jit = off".to_owned()],
                cures: cures.collect(),
            };
            assert_eq!(reason.words(), expected);
        };
        let index =
            [node(0, "Aggregate", 1.0, 1.0), node(1, "Index Scan using t_a on t", 5.0, 6.0)];
        let scan = [node(0, "Aggregate", 1.0, 1.0), node(1, "Seq Scan on t", 5.0, 6.0)];
        check(
            &index,
            &scan,
            &[("enable_seqscan = off", 1.1)],
            "Seq Scan on t on B where A has Index Scan using t_a on t; \
             with enable_seqscan = off it takes 1.10 ms in place of 50.0",
        );
        check(
            &index,
            &index,
            &[],
            "the same plan on both sides; no setting that was tried makes it faster",
        );
        // The estimate of the join follows from the one of the scan.
        let joined = [
            node(0, "Nested Loop", 2.0, 90_000.0),
            node(1, "Seq Scan on t", 1.0, 3_000.0),
            node(1, "Index Scan using u_pkey on u", 1.0, 1.0),
        ];
        check(
            &joined[..1],
            &joined,
            &[("ANALYZE", 2.0)],
            "Seq Scan on t on B where A has no node; Seq Scan on t gives 3,000 rows on B where 1.00 were expected; \
             with ANALYZE it takes 2.00 ms in place of 50.0",
        );
    }
}
