//! The plans of a workload's statements on both sides, after the load.

use load::Workload;
use postgres::{Client, SimpleQueryMessage};
use record::comparison::{Plan, PlanPair};
use script::{CommandKind, Names, Prng, Script, Target, Variables};
use serde_json::Value;

use crate::contest::Corner;

/// Statements that a record shows, those with the highest cost.
const SHOWN_MAX: usize = 10;

/// Commands of a script that are looked at, so that a loop that never ends does not matter.
const STEPS_MAX: usize = 10_000;

/// Explains on both sides what each script would run once, with the same keys. A statement that
/// cannot be explained is left out. Plans that differ come first, then the most expensive.
pub(crate) fn compare(sides: &[Corner<'_>; 2], seed: u64) -> Vec<PlanPair> {
    let clients = sides.each_ref().map(|side| side.ground.connect());
    let [Ok(mut a), Ok(mut b)] = clients else { return Vec::new() };
    for (side, client) in sides.iter().zip([&mut a, &mut b]) {
        for (name, value) in &side.workload.session {
            // What cannot be set explains itself in the run.
            let _ = client.execute("SELECT set_config($1, $2, false)", &[name, value]);
        }
    }
    let mut pairs: Vec<PlanPair> = Vec::new();
    for statement in statements(&sides[0].workload, seed) {
        let plans = [explain(&mut a, &statement), explain(&mut b, &statement)];
        if let [Some(a), Some(b)] = plans {
            pairs.push(PlanPair { statement, a, b });
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

/// The statements that one transaction of each script sends, variables filled in.
fn statements(workload: &Workload, seed: u64) -> Vec<String> {
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
        one(&script, variables, seed, &mut statements);
    }
    statements.dedup();
    statements
}

/// Follows a script once. Results of statements are not known, so what is computed from them is
/// not either, and ends it.
fn one(script: &Script, mut variables: Variables, seed: u64, statements: &mut Vec<String>) {
    let mut prng = Prng::from_seed(seed);
    let mut at = 0;
    for _ in 0..STEPS_MAX {
        let Some(command) = script.commands.get(at) else { return };
        let mut eval = |expr: &script::Expr| expr.eval(&variables, &mut prng, &mut |_| {}).ok();
        at = match &command.kind {
            CommandKind::Sql { template, .. } => {
                let mut sql = Vec::new();
                template.write_simple(&variables, &mut sql);
                statements.push(String::from_utf8_lossy(&sql).trim().to_owned());
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

fn explain(client: &mut Client, statement: &str) -> Option<Plan> {
    let said = client.simple_query(&format!("EXPLAIN (FORMAT JSON) {statement}")).ok()?;
    let lines = said.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let json: Value = serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).ok()?;
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
            one(&script, Variables::new(&names), 1, &mut statements);
            assert_eq!(statements, expected, "{text}");
        };
        check("\\set a 1 + 1\nSELECT :a;\n", &["SELECT 2;"]);
        check(
            "\\if true\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\nSELECT 3;\n",
            &["SELECT 1;", "SELECT 3;"],
        );
        check("\\set a :unknown\nSELECT 1;\n", &[]);
    }
}
