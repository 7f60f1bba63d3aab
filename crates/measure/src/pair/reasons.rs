//! Why a script is slower on B: both sides execute it again, in transactions that are rolled back, and B executes it under
//! changes that may make it fast.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use load::{ClientGroup, LoadScript, Protocol, StopUrgency};
use record::comparison::{
    ExecutedPlan, PlanNode, ServerRenewal, SlowdownCure, SlowdownReason, StatementComparison,
    StatementVerdict,
};
use serde_json::Value;
use server::Client;
use server::quote::{identifier, literal};

use crate::pair::contest::{ComparedSide, PairContest};
use crate::pair::plans::{ScriptTracer, SentStatement, explain_json, node_name};

/// Scripts whose reasons are looked for, those with the largest effect.
const SCRIPTS_MAX: usize = 30;

/// The random values with which a script is executed: among several draws one may be slow.
const DRAWS: u64 = 5;

/// The time for the reasons of all scripts, as a share of the contest's, and at least.
const SHARE: f64 = 0.25;
const LEAST: Duration = Duration::from_secs(30);

/// The time for all draws of a script, and until its last change. One execution may take longer.
const DRAWS_TIME: Duration = Duration::from_secs(5);
const CHANGES_TIME: Duration = Duration::from_secs(15);

/// An execution ends after this time, and after so many times the time that A takes.
const LIMIT_MS: f64 = 60_000.0;
const SLOWER: f64 = 20.0;
const LIMIT_LEAST_MS: f64 = 5_000.0;

/// A change is a cure from this share of the additional time on.
const CURED_SHARE: f64 = 0.5;

/// A change is a cure after so many executions with it and without it, by turns: a busy moment of the machine slows one
/// execution and not its neighbours.
const CURE_REPETITIONS: usize = 3;

/// Cures that a record keeps.
const CURES_MAX: usize = 3;

/// A change of B's session under which a script is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SessionChange {
    /// A setting.
    Set { name: String, value: String },
    /// New statistics of the tables of the plan.
    Analyze,
    /// New statistics with this many times the usual detail.
    AnalyzeMore { target: u32 },
}

impl SessionChange {
    fn set(name: &str, value: &str) -> SessionChange {
        SessionChange::Set { name: name.to_owned(), value: value.to_owned() }
    }

    /// For people.
    fn words(&self) -> String {
        match self {
            SessionChange::Set { name, value } => format!("{name} = {value}"),
            SessionChange::Analyze => "ANALYZE".to_owned(),
            SessionChange::AnalyzeMore { target } => {
                format!("ANALYZE and default_statistics_target = {target}")
            }
        }
    }

    /// The commands of a transaction that make it.
    fn commands(&self, tables: &BTreeSet<String>) -> Vec<String> {
        let analyze = || tables.iter().map(|table| format!("ANALYZE {table}"));
        match self {
            SessionChange::Set { name, value } => {
                vec![format!("SELECT set_config({}, {}, true)", literal(name), literal(value))]
            }
            SessionChange::Analyze => analyze().collect(),
            SessionChange::AnalyzeMore { target } => {
                let target = format!("SET LOCAL default_statistics_target = {target}");
                std::iter::once(target).chain(analyze()).collect()
            }
        }
    }
}

/// A statement that a server has executed, or planned.
struct ExecutedStatement {
    plan: ExecutedPlan,
    /// The tables that the plan reads or changes, as SQL names them.
    tables: BTreeSet<String>,
}

/// The statement that took the most additional time on B among all draws.
struct SlowestDraw {
    more_ms: f64,
    sent: Vec<SentStatement>,
    /// The statement among those sent.
    at: usize,
    /// On A and on B.
    executed: (ExecutedStatement, ExecutedStatement),
    limit_ms: f64,
}

/// A statement of a transaction that is slower on B.
struct SlowStatement<'s> {
    sent: &'s [SentStatement],
    /// The statement among those sent.
    at: usize,
    /// The tables of its plans, as SQL names them.
    tables: BTreeSet<String>,
    a_ms: f64,
    /// None where it does not end within `limit_ms`.
    b_ms: Option<f64>,
    limit_ms: f64,
}

/// Both sides, and the script whose reason is looked for.
struct ReasonSearch<'c> {
    a: &'c mut Client,
    b: &'c mut Client,
    tracer: &'c ScriptTracer<'c>,
    changes: &'c [SessionChange],
    is_interrupted: &'c dyn Fn() -> bool,
    /// No change is tried after this moment.
    changes_end: Instant,
}

impl PairContest<'_> {
    /// Adds the reasons to those scripts that are slower on B or do not end there.
    pub(crate) fn add_reasons(&self, statements: &mut [StatementComparison]) {
        // The whole comparison gives the reasons of a single script.
        let Some(workload) = self.mixed() else { return };
        let wanted = |one: &&mut StatementComparison| {
            matches!(one.verdict, StatementVerdict::Slower | StatementVerdict::DoesNotEnd)
        };
        let slower: Vec<_> = statements.iter_mut().filter(wanted).take(SCRIPTS_MAX).collect();
        let clients = self.arena.sides().map(ComparedSide::connect);
        let ([Ok(mut a), Ok(mut b)], Some(tracer)) = (clients, ScriptTracer::of(workload)) else {
            // Without both servers nothing can be explained: the verdicts stand without a reason.
            return;
        };
        if slower.is_empty() || [&mut a, &mut b].map(|one| prepare(one, workload)) != [true; 2] {
            return;
        }
        // Statistics of a database that the user owns stay as they are, and its tables without locks.
        let is_own =
            matches!(self.arena.renewal(), ServerRenewal::Restarted | ServerRenewal::Exchanged);
        let changes = changes([&mut a, &mut b], workload.protocol, is_own);
        for client in [&mut a, &mut b] {
            client.set_limits(|limits| limits.control = Some(self.control.clone()));
        }
        let is_interrupted = || self.control.urgency() != StopUrgency::None;
        let (began, limit) = (Instant::now(), self.max_time.mul_f64(SHARE).max(LEAST));
        let count = slower.len();
        for (done, one) in slower.into_iter().enumerate() {
            // Those with the largest effect come first, and leave a share of the time to the others.
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() || is_interrupted() {
                break;
            }
            let share = left / u32::try_from(count - done).expect("no more than SCRIPTS_MAX");
            let excluded = self.excluded.iter().map(|excluded| &excluded.script);
            let mut scripts = workload.scripts.iter().chain(excluded);
            let Some(script) = scripts.find(|script| script.name == one.script) else { continue };
            let mut search = ReasonSearch {
                a: &mut a,
                b: &mut b,
                tracer: &tracer,
                changes: &changes,
                is_interrupted: &is_interrupted,
                changes_end: Instant::now() + share.min(CHANGES_TIME),
            };
            one.reason = search.reason(script, self.seed).map(Box::new);
        }
    }
}

/// Sets what the load's sessions have set. False if the session ends by it.
fn prepare(client: &mut Client, workload: &ClientGroup) -> bool {
    for (name, value) in &workload.session {
        // What cannot be set explains itself in the run.
        let _ = client.execute("SELECT set_config($1, $2, false)", &[name, value]);
    }
    !client.is_closed()
}

/// Settings of the planner that a session can set.
const PLANNER_SETTINGS: &str = "
    SELECT name, current_setting(name), vartype
    FROM pg_settings
    WHERE context IN ('user', 'superuser') AND name <> 'default_statistics_target'
      AND (category LIKE 'Query Tuning%' OR category = 'Resource Usage / Memory' OR name = 'plan_cache_mode')
    ORDER BY name";

/// The changes that are tried on B, the likely ones first. `is_own` says that B's database is the rig's.
fn changes([a, b]: [&mut Client; 2], protocol: Protocol, is_own: bool) -> Vec<SessionChange> {
    let of_a = planner_settings(a);
    let of_b = planner_settings(b);
    let mut changes = changed_settings(&of_a, &of_b);
    if is_own {
        changes.push(SessionChange::Analyze);
    }
    changes.extend(new_features(&of_a, &of_b));
    if of_b.get("jit").is_some_and(|jit| jit.value == "on") {
        changes.push(SessionChange::set("jit", "off"));
    }
    changes.push(SessionChange::set("work_mem", WORK_MEM));
    if protocol == Protocol::Prepared {
        changes.push(SessionChange::set("plan_cache_mode", "force_custom_plan"));
    }
    if is_own {
        changes.push(SessionChange::AnalyzeMore { target: STATISTICS_TARGET });
    }
    let mut seen = Vec::new();
    changes.retain(|change| {
        !seen.contains(change) && {
            seen.push(change.clone());
            true
        }
    });
    changes
}

const WORK_MEM: &str = "256MB";
const STATISTICS_TARGET: u32 = 1_000;

/// A setting of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SessionSetting {
    value: String,
    is_bool: bool,
}

fn planner_settings(client: &mut Client) -> BTreeMap<String, SessionSetting> {
    let rows = client.query(PLANNER_SETTINGS, &[]).into_iter().flatten();
    let setting = |row: postgres::Row| {
        let vartype: String = row.get(2);
        (row.get(0), SessionSetting { value: row.get(1), is_bool: vartype == "bool" })
    };
    rows.map(setting).collect()
}

/// Settings that both sides know and that B has otherwise: with A's values.
fn changed_settings(
    of_a: &BTreeMap<String, SessionSetting>,
    of_b: &BTreeMap<String, SessionSetting>,
) -> Vec<SessionChange> {
    let is_other = |(name, a): &(&String, &SessionSetting)| {
        of_b.get(*name).is_some_and(|b| b.value != a.value)
    };
    let to_a = |(name, a): (&String, &SessionSetting)| SessionChange::set(name, &a.value);
    of_a.iter().filter(is_other).map(to_a).collect()
}

/// Features of the planner that B alone has: without them.
fn new_features(
    of_a: &BTreeMap<String, SessionSetting>,
    of_b: &BTreeMap<String, SessionSetting>,
) -> Vec<SessionChange> {
    let is_new = |(name, b): &(&String, &SessionSetting)| {
        b.is_bool && b.value == "on" && name.starts_with("enable_") && !of_a.contains_key(*name)
    };
    of_b.iter().filter(is_new).map(|(name, _)| SessionChange::set(name, "off")).collect()
}

impl ReasonSearch<'_> {
    /// Why a script is slower; none where no statement of it can be explained on both sides.
    fn reason(&mut self, script: &LoadScript, seed: u64) -> Option<SlowdownReason> {
        let began = Instant::now();
        let mut worst: Option<SlowestDraw> = None;
        for draw in 0..DRAWS {
            if draw > 0 && began.elapsed() > DRAWS_TIME || (self.is_interrupted)() {
                break;
            }
            let sent = self.tracer.statements(script, seed.wrapping_add(draw));
            let a = transaction(self.a, &sent, &[], LIMIT_MS);
            let b = transaction(self.b, &sent, &[], limit_ms(&a));
            let limit_ms = limit_ms(&a);
            for (at, (a, b)) in a.into_iter().zip(b).enumerate() {
                let Some((more_ms, executed)) = additional_ms(a, b) else { continue };
                if worst.as_ref().is_none_or(|known| more_ms > known.more_ms) {
                    let sent = sent.clone();
                    worst = Some(SlowestDraw { more_ms, sent, at, executed, limit_ms });
                }
            }
            // No other draw takes longer.
            if worst.as_ref().is_some_and(|draw| draw.more_ms.is_infinite()) {
                break;
            }
        }
        let SlowestDraw { more_ms, sent, at, executed, mut limit_ms } = worst?;
        let (a, b) = match more_ms.is_infinite() {
            true => executed,
            // Once more, with warm caches.
            false => {
                let a = transaction(self.a, &sent, &[], LIMIT_MS);
                limit_ms = self::limit_ms(&a);
                let b = transaction(self.b, &sent, &[], limit_ms);
                (a.into_iter().nth(at)??, b.into_iter().nth(at)??)
            }
        };
        let tables = a.tables.union(&b.tables).cloned().collect();
        let (a_ms, b_ms) = (a.plan.ms?, b.plan.ms);
        let slow = SlowStatement { sent: &sent, at, tables, a_ms, b_ms, limit_ms };
        let (tried, cures) = self.cures(&slow);
        Some(SlowdownReason {
            statement: sent[at].named.clone(),
            differs: a.plan.difference(&b.plan),
            estimate: b.plan.wrong_estimate(),
            plans: [a.plan, b.plan],
            tried,
            cures,
        })
    }

    /// The changes that were tried on B, and those that help.
    fn cures(&mut self, slow: &SlowStatement<'_>) -> (Vec<String>, Vec<SlowdownCure>) {
        let (mut tried, mut cures) = (Vec::new(), Vec::new());
        for change in self.changes {
            if Instant::now() > self.changes_end || (self.is_interrupted)() {
                break;
            }
            tried.push(change.words());
            if let Some(ms) = self.cured_ms(slow, &change.commands(&slow.tables)) {
                cures.push(SlowdownCure { change: change.words(), ms });
            }
        }
        cures.sort_by(|one, other| one.ms.total_cmp(&other.ms));
        cures.truncate(CURES_MAX);
        (tried, cures)
    }

    /// The time of a statement on B after commands that cure it; none if they do not.
    fn cured_ms(&mut self, slow: &SlowStatement<'_>, commands: &[String]) -> Option<f64> {
        let limit_ms = slow.b_ms.unwrap_or(slow.limit_ms).max(1.0);
        // The first execution may be slower by what it has to read, and is no evidence; but a statement that does not end
        // will not end then either.
        let first_ms = self.b_ms(slow, commands, limit_ms);
        if first_ms.is_none() && slow.b_ms.is_none() {
            return None;
        }
        let mut fastest_ms = first_ms.unwrap_or(f64::INFINITY);
        let (mut without_ms, mut slowest_ms) = (slow.b_ms.unwrap_or(limit_ms), 0.0_f64);
        for _ in 0..CURE_REPETITIONS {
            let ms = self.b_ms(slow, commands, limit_ms)?;
            (fastest_ms, slowest_ms) = (fastest_ms.min(ms), slowest_ms.max(ms));
            let enough_ms = without_ms - (without_ms - slow.a_ms) * CURED_SHARE;
            if without_ms <= slow.a_ms || slowest_ms > enough_ms {
                return None;
            }
            // A statement that did not end is not executed again without the change.
            if slow.b_ms.is_some() {
                without_ms = without_ms.min(self.b_ms(slow, &[], slow.limit_ms)?);
            }
        }
        Some(fastest_ms)
    }

    /// The time of a statement on B after commands; none where it takes longer than the limit.
    fn b_ms(
        &mut self,
        slow: &SlowStatement<'_>,
        commands: &[String],
        limit_ms: f64,
    ) -> Option<f64> {
        let executed = transaction(self.b, slow.sent, commands, limit_ms);
        executed.into_iter().nth(slow.at)??.plan.ms
    }
}

/// The time that B's statements may take, by what A's took.
fn limit_ms(of_a: &[Option<ExecutedStatement>]) -> f64 {
    let a_ms: f64 = of_a.iter().flatten().filter_map(|one| one.plan.ms).sum();
    (a_ms * SLOWER).max(LIMIT_LEAST_MS)
}

/// The additional time of B, infinite where B did not end, beside both. None where one of the sides cannot tell.
fn additional_ms(
    a: Option<ExecutedStatement>,
    b: Option<ExecutedStatement>,
) -> Option<(f64, (ExecutedStatement, ExecutedStatement))> {
    let (a, b) = (a?, b?);
    let a_ms = a.plan.ms?;
    Some((b.plan.ms.map_or(f64::INFINITY, |b_ms| b_ms - a_ms), (a, b)))
}

/// Executes statements in a transaction that is rolled back, after commands that prepare it. None stands for a statement
/// that cannot be explained; one that takes longer than the limit is planned only.
fn transaction(
    client: &mut Client,
    sent: &[SentStatement],
    commands: &[String],
    limit_ms: f64,
) -> Vec<Option<ExecutedStatement>> {
    let executed = client.batch_execute("BEGIN").and_then(|()| {
        for command in commands {
            client.batch_execute(command)?;
        }
        sent.iter().map(|statement| execute(client, statement, limit_ms)).collect()
    });
    let is_over = client.batch_execute("ROLLBACK; DEALLOCATE ALL").is_ok();
    match executed {
        Ok(executed) if is_over => executed,
        _ => sent.iter().map(|_| None).collect(),
    }
}

/// Executes one statement of a transaction, or plans it where it takes too long.
///
/// # Errors
/// If the transaction cannot go on.
fn execute(
    client: &mut Client,
    statement: &SentStatement,
    limit_ms: f64,
) -> Result<Option<ExecutedStatement>, postgres::Error> {
    // It would end the transaction.
    if is_transaction_command(&statement.text) {
        return Ok(None);
    }
    let limit = format!("SAVEPOINT pgrig_reason; SET LOCAL statement_timeout = {limit_ms:.0}");
    client.batch_execute(&limit)?;
    let found = match explain_json(client, statement, EXECUTED) {
        Ok(found) => found,
        Err(error) => {
            client.batch_execute("ROLLBACK TO SAVEPOINT pgrig_reason; DEALLOCATE ALL")?;
            if error.code() != Some(&postgres::error::SqlState::QUERY_CANCELED) {
                return Ok(None);
            }
            explain_json(client, statement, PLANNED)?
        }
    };
    client.batch_execute("RELEASE SAVEPOINT pgrig_reason")?;
    Ok(read(&found))
}

const EXECUTED: &str = "ANALYZE, BUFFERS, VERBOSE, TIMING OFF, FORMAT JSON";
const PLANNED: &str = "VERBOSE, FORMAT JSON";

fn is_transaction_command(text: &str) -> bool {
    const WORDS: [&str; 8] =
        ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];
    let first = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
    first.is_some_and(|first| WORDS.contains(&first.to_lowercase().as_str()))
}

/// Reads one plan of EXPLAIN's JSON, with its neighbours.
fn read(found: &Value) -> Option<ExecutedStatement> {
    let (mut nodes, mut tables) = (Vec::new(), BTreeSet::new());
    add(&found["Plan"], 0, &mut nodes, &mut tables)?;
    let time = |key: &str| found[key].as_f64();
    let times = time("Execution Time").zip(time("Planning Time"));
    let ms = times.map(|(execution, planning)| execution + planning);
    let blocks = |key: &str| found["Plan"][key].as_u64();
    let [hit, read] = ["Shared Hit Blocks", "Shared Read Blocks"].map(blocks);
    let plan = ExecutedPlan { ms, blocks: hit.zip(read).map(|(hit, read)| hit + read), nodes };
    Some(ExecutedStatement { plan, tables })
}

/// Adds a node and those below it. None where it is no node.
fn add(
    node: &Value,
    depth: u32,
    nodes: &mut Vec<PlanNode>,
    tables: &mut BTreeSet<String>,
) -> Option<()> {
    let number = |key: &str| node[key].as_f64();
    let is_executed = number("Actual Loops").is_some_and(|loops| loops > 0.0);
    if let [Some(schema), Some(table)] = ["Schema", "Relation Name"].map(|key| node[key].as_str()) {
        tables.insert(format!("{}.{}", identifier(schema), identifier(table)));
    }
    nodes.push(PlanNode {
        depth,
        node: node_name(node),
        expected_rows: number("Plan Rows")?,
        rows: number("Actual Rows").filter(|_| is_executed),
    });
    for child in node["Plans"].as_array().into_iter().flatten() {
        add(child, depth + 1, nodes, tables)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[(&str, &str)]) -> BTreeMap<String, SessionSetting> {
        let setting = |value: &str| SessionSetting {
            value: value.to_owned(),
            is_bool: matches!(value, "on" | "off"),
        };
        all.iter().map(|(name, value)| ((*name).to_owned(), setting(value))).collect()
    }

    #[test]
    fn settings_of_a_and_new_features_are_tried() {
        let a = settings(&[("random_page_cost", "4"), ("enable_sort", "on"), ("work_mem", "4MB")]);
        let b = settings(&[
            ("random_page_cost", "40"),
            ("enable_sort", "on"),
            ("enable_self_join_elimination", "on"),
            ("enable_off_already", "off"),
            ("work_mem", "4MB"),
        ]);
        let words = |changes: Vec<SessionChange>| -> Vec<String> {
            changes.iter().map(SessionChange::words).collect()
        };
        assert_eq!(words(changed_settings(&a, &b)), ["random_page_cost = 4"]);
        assert_eq!(words(new_features(&a, &b)), ["enable_self_join_elimination = off"]);
    }

    #[test]
    fn a_plan_is_read_with_its_time_blocks_rows_and_tables() {
        let found = serde_json::json!({
            "Plan": {
                "Node Type": "Nested Loop", "Plan Rows": 3, "Actual Rows": 4.5, "Actual Loops": 1,
                "Shared Hit Blocks": 7, "Shared Read Blocks": 2,
                "Plans": [
                    {"Node Type": "Seq Scan", "Schema": "public", "Relation Name": "T", "Plan Rows": 1,
                     "Actual Rows": 900, "Actual Loops": 1},
                    {"Node Type": "Materialize", "Plan Rows": 9, "Actual Rows": 0, "Actual Loops": 0},
                ],
            },
            "Planning Time": 0.5, "Execution Time": 2.0,
        });
        let read = read(&found).expect("a plan");
        assert_eq!((read.plan.ms, read.plan.blocks), (Some(2.5), Some(9)));
        assert_eq!(read.tables.into_iter().collect::<Vec<_>>(), ["\"public\".\"T\""]);
        let rows: Vec<_> = read.plan.nodes.iter().map(|node| (node.depth, node.rows)).collect();
        assert_eq!(rows, [(0, Some(4.5)), (1, Some(900.0)), (1, None)]);
        let wrong = read.plan.wrong_estimate().expect("a wrong estimate");
        assert_eq!(wrong.node, "Seq Scan on T");
        assert!(super::read(&Value::Null).is_none());
    }

    #[test]
    fn what_ends_a_transaction_is_not_explained() {
        for (text, expected) in [
            ("BEGIN;", true),
            (" end", true),
            ("commit;", true),
            ("SELECT 1", false),
            ("ENDING()", false),
        ] {
            assert_eq!(is_transaction_command(text), expected, "{text}");
        }
    }
}
