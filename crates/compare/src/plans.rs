//! The plans of a workload's statements on both sides, after the load.

use load::{Protocol, Workload};
use postgres::SimpleQueryMessage;
use record::comparison::{Plan, PlanPair};
use script::{CommandKind, Names, Prng, Script, Target, Template, Variables};
use serde_json::Value;
use server::Client;

use crate::contest::ComparedSide;

/// Statements that a record shows, those with the highest cost.
const SHOWN_MAX: usize = 10;

/// Commands of a script that are looked at, so that a loop that never ends does not matter.
const STEPS_MAX: usize = 10_000;

/// Explains on both sides what each script would run once, with the same keys. A statement that
/// cannot be explained is left out. Plans that differ come first, then the most expensive.
pub(crate) fn compare(
    sides: [&dyn ComparedSide; 2],
    workloads: &[Vec<Workload>; 2],
    seed: u64,
) -> Vec<PlanPair> {
    let clients = sides.map(ComparedSide::connect);
    let [Ok(mut a), Ok(mut b)] = clients else { return Vec::new() };
    for (workloads, client) in workloads.iter().zip([&mut a, &mut b]) {
        for (name, value) in workloads.iter().flat_map(|workload| &workload.session) {
            // What cannot be set explains itself in the run.
            let _ = client.execute("SELECT set_config($1, $2, false)", &[name, value]);
        }
    }
    let mut pairs: Vec<PlanPair> = Vec::new();
    for statement in workloads[0].iter().flat_map(|workload| statements(workload, seed)) {
        let plans = [explain(&mut a, &statement), explain(&mut b, &statement)];
        if let [Some(a), Some(b)] = plans {
            pairs.push(PlanPair { statement: statement.text, a, b });
        }
    }
    let key = |pair: &PlanPair| (pair.is_same(), -pair.a.cost.max(pair.b.cost));
    pairs.sort_by(|one, other| {
        let (one, other) = (key(one), key(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    pairs.truncate(SHOWN_MAX);
    pairs
}

/// A statement that a script sends.
#[derive(Clone, Debug, PartialEq)]
struct Statement {
    text: String,
    /// As a prepared statement: its text with `$1`, `$2`, …, and their values as SQL.
    prepared: Option<(String, Vec<String>)>,
}

impl Statement {
    fn of(template: &Template, variables: &Variables, protocol: Protocol) -> Statement {
        let mut simple = Vec::new();
        template.write_simple(variables, &mut simple);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let value = |slot: &script::Slot| {
            let mut value = Vec::new();
            match variables.write(*slot, &mut value) {
                true => format!("'{}'", String::from_utf8_lossy(&value).replace('\'', "''")),
                false => "NULL".to_owned(),
            }
        };
        let parameterized = template.parameterized().ok();
        let prepared = parameterized
            .filter(|_| protocol == Protocol::Prepared)
            .map(|given| (text(given.text), given.slots.iter().map(value).collect()));
        Statement { text: text(&simple), prepared }
    }
}

/// The statements that one transaction of each script sends.
fn statements(workload: &Workload, seed: u64) -> Vec<Statement> {
    let mut statements = Vec::new();
    for given in &workload.scripts {
        let mut names = Names::default();
        let syntax = match given.syntax {
            load::Syntax::Current => script::Syntax::Current,
            load::Syntax::NineX => script::Syntax::NineX,
        };
        let Ok(script) = Script::parse(&given.name, &given.text, syntax, &mut names) else {
            continue;
        };
        let mut variables = Variables::new(&names);
        let client = [("client_id".to_owned(), "0".to_owned())];
        for (name, value) in client.iter().chain(&workload.variables) {
            if let Some(slot) = names.slot(name) {
                variables.set_text(slot, value);
            }
        }
        one(&script, variables, workload.protocol, seed, &mut statements);
    }
    statements.dedup();
    statements
}

/// Follows a script once. Results of statements are not known, so what is computed from them is
/// not either, and ends it.
fn one(
    script: &Script,
    mut variables: Variables,
    protocol: Protocol,
    seed: u64,
    statements: &mut Vec<Statement>,
) {
    let mut prng = Prng::from_seed(seed);
    let mut at = 0;
    for _ in 0..STEPS_MAX {
        let Some(command) = script.commands.get(at) else { return };
        let mut eval = |expr: &script::Expr| expr.eval(&variables, &mut prng, &mut |_| {}).ok();
        at = match &command.kind {
            CommandKind::Sql { template, .. } => {
                statements.push(Statement::of(template, &variables, protocol));
                script.next(at)
            }
            CommandKind::Set { target: Target::Slot(slot), expr } => {
                let Some(value) = eval(expr) else { return };
                variables.set(*slot, value);
                script.next(at)
            }
            CommandKind::If { condition, otherwise }
            | CommandKind::Elif { condition, otherwise, .. } => match eval(condition) {
                Some(value) if value.is_true() => script.next(at),
                Some(_) => *otherwise,
                None => return,
            },
            CommandKind::Else { end } => *end,
            _ => script.next(at),
        };
    }
}

/// After so many executions with plans for their values, the server decides whether a prepared
/// statement gets a plan for any values (src/backend/utils/cache/plancache.c, `choose_custom_plan`).
const CUSTOM_PLANS: usize = 5;

/// The plan that a client gets; of a prepared statement, the one that it keeps.
fn explain(client: &mut Client, statement: &Statement) -> Option<Plan> {
    let Some((text, values)) = &statement.prepared else {
        return explained(client, &statement.text);
    };
    client.batch_execute(&format!("PREPARE pgrig_plan AS {text}")).ok()?;
    let execute = match values.as_slice() {
        [] => "EXECUTE pgrig_plan".to_owned(),
        values => format!("EXECUTE pgrig_plan ({})", values.join(", ")),
    };
    // To explain an execution counts as one.
    let plans = (0..=CUSTOM_PLANS).map(|_| explained(client, &execute));
    let kept = plans.last().flatten();
    client.batch_execute("DEALLOCATE pgrig_plan").ok()?;
    kept
}

fn explained(client: &mut Client, statement: &str) -> Option<Plan> {
    let said = client.simple_query(&format!("EXPLAIN (FORMAT JSON) {statement}")).ok()?;
    let lines = said.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    read(&lines.collect::<Vec<_>>().join("\n"))
}

/// Reads what EXPLAIN has said.
pub(crate) fn read(json: &str) -> Option<Plan> {
    let json: Value = serde_json::from_str(json).ok()?;
    plan(&json[0]["Plan"])
}

fn plan(root: &Value) -> Option<Plan> {
    let mut steps = Vec::new();
    add(root, 0, &mut steps);
    let number = |key: &str| root[key].as_f64();
    Some(Plan { cost: number("Total Cost")?, rows: number("Plan Rows")?, steps })
}

fn add(node: &Value, depth: usize, steps: &mut Vec<String>) {
    let text = |key: &str| node[key].as_str();
    let mut step = "  ".repeat(depth);
    step.push_str(text("Node Type").unwrap_or("?"));
    if let Some(index) = text("Index Name") {
        step.push_str(&format!(" using {index}"));
    }
    if let Some(relation) = text("Relation Name") {
        step.push_str(&format!(" on {relation}"));
    }
    steps.push(step);
    for child in node["Plans"].as_array().into_iter().flatten() {
        add(child, depth + 1, steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_its_nodes_from_the_top() {
        let json = serde_json::json!({
            "Node Type": "Aggregate", "Total Cost": 12.5, "Plan Rows": 1,
            "Plans": [{
                "Node Type": "Index Scan", "Relation Name": "t", "Index Name": "t_pkey",
                "Total Cost": 8.0, "Plan Rows": 3,
            }],
        });
        let steps = vec!["Aggregate".to_owned(), "  Index Scan using t_pkey on t".to_owned()];
        assert_eq!(plan(&json), Some(Plan { cost: 12.5, rows: 1.0, steps }));
        assert_eq!(plan(&Value::Null), None);
    }

    #[test]
    fn a_script_is_followed_with_its_variables() {
        let check = |text: &str, expected: &[&str]| {
            let mut names = Names::default();
            let syntax = script::Syntax::Current;
            let script = Script::parse("one", text, syntax, &mut names).expect("a script");
            let mut statements = Vec::new();
            one(&script, Variables::new(&names), Protocol::Prepared, 1, &mut statements);
            let seen: Vec<&str> = statements.iter().map(|one| one.text.as_str()).collect();
            assert_eq!(seen, expected, "{text}");
            let has_values = |one: &Statement| {
                one.prepared.as_ref().is_some_and(|(text, values)| {
                    text.matches('$').count() == values.len() && !text.contains(':')
                })
            };
            assert!(statements.iter().all(has_values), "{statements:?}");
        };
        check("\\set a 1 + 1\nSELECT :a;\n", &["SELECT 2;"]);
        check(
            "\\if true\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\nSELECT 3;\n",
            &["SELECT 1;", "SELECT 3;"],
        );
        check("\\set a :unknown\nSELECT 1;\n", &[]);
    }
}
