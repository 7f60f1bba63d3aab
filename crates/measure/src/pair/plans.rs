//! The plans of a workload's statements on both sides, after the load.

use std::sync::Arc;

use load::{ClientGroup, LoadScript, Protocol, RowTables};
use postgres::SimpleQueryMessage;
use record::comparison::{PlanPair, QueryPlan};
use script::{
    CommandKind, ParsedScript, RowPicker, RowTable, SetVariable, SqlTemplate, TemplateParameter,
    VariableNames, Variables, Xoroshiro128,
};
use serde_json::Value;
use server::Client;

use crate::pair::contest::ComparedSide;

/// Statements that a record shows, those with the highest cost.
const SHOWN_MAX: usize = 10;

/// Commands of a script that are looked at, so that a loop that never ends does not matter.
const STEPS_MAX: usize = 10_000;

/// Explains on both sides what each script would run once, with the same keys. A statement that
/// cannot be explained is left out. Plans that differ come first, then the most expensive.
pub(crate) fn compare(
    sides: [&dyn ComparedSide; 2],
    workloads: &[Vec<ClientGroup>; 2],
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
    for workload in &workloads[0] {
        for statement in statements(workload, seed) {
            let plans = [explain(&mut a, &statement), explain(&mut b, &statement)];
            if let [Some(a), Some(b)] = plans {
                // Values that were drawn from files stay there.
                let is_drawn = !workload.rows.is_empty();
                let statement = if is_drawn { statement.named } else { statement.text };
                pairs.push(PlanPair { statement, a, b });
            }
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
pub(crate) struct SentStatement {
    /// With the values of its variables.
    pub(crate) text: String,
    /// With their names.
    pub(crate) named: String,
    /// As a prepared statement: its text with `$1`, `$2`, …, and their values as SQL.
    pub(crate) prepared: Option<(String, Vec<String>)>,
}

impl SentStatement {
    fn of(template: &SqlTemplate, variables: &Variables, protocol: Protocol) -> SentStatement {
        let mut simple = Vec::new();
        template.write_simple(variables, &mut simple);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let value = |parameter: &TemplateParameter| {
            let mut value = Vec::new();
            match variables.is_null(*parameter) || !variables.write(parameter.slot, &mut value) {
                true => "NULL".to_owned(),
                false => server::quote::literal(&String::from_utf8_lossy(&value)),
            }
        };
        let parameterized = template.parameterized().ok();
        let prepared = parameterized
            .filter(|_| protocol == Protocol::Prepared)
            .map(|given| (text(given.text), given.parameters.iter().map(value).collect()));
        SentStatement { text: text(&simple), named: text(template.text()), prepared }
    }
}

/// The statements that one transaction of each script sends.
fn statements(workload: &ClientGroup, seed: u64) -> Vec<SentStatement> {
    let Some(tracer) = ScriptTracer::of(workload) else { return Vec::new() };
    let scripts = workload.scripts.iter();
    let mut statements: Vec<SentStatement> =
        scripts.flat_map(|script| tracer.statements(script, seed)).collect();
    statements.dedup();
    statements
}

/// Follows the scripts of a workload to the statements that they send.
pub(crate) struct ScriptTracer<'w> {
    workload: &'w ClientGroup,
    tables: RowTables,
    rows: Arc<[Arc<RowTable>]>,
}

impl ScriptTracer<'_> {
    /// None where the rows that scripts draw cannot be read: the load has failed with the reason.
    pub(crate) fn of(workload: &ClientGroup) -> Option<ScriptTracer<'_>> {
        let tables = RowTables::read(&workload.rows).ok()?;
        let rows = tables.tables().ok()?;
        Some(ScriptTracer { workload, tables, rows })
    }

    /// The statements that one transaction of a script sends; none where it cannot be read.
    pub(crate) fn statements(&self, given: &LoadScript, seed: u64) -> Vec<SentStatement> {
        let (mut names, mut statements) = (VariableNames::default(), Vec::new());
        let Ok(script) = ParsedScript::parse(&given.name, &given.text, given.syntax, &mut names)
        else {
            return statements;
        };
        let Ok(rows) = self.tables.pickers(&script) else { return statements };
        let mut variables = Variables::new(&names).with_tables(self.rows.clone());
        let client = [("client_id".to_owned(), "0".to_owned())];
        for (name, value) in client.iter().chain(&self.workload.variables) {
            if let Some(slot) = names.slot(name) {
                variables.set_text(slot, value);
            }
        }
        one(&script, &rows, variables, self.workload.protocol, seed, &mut statements);
        statements
    }
}

/// Follows a script once. Results of statements are not known, so what is computed from them is
/// not either, and ends it.
fn one(
    script: &ParsedScript,
    rows: &[Option<RowPicker>],
    mut variables: Variables,
    protocol: Protocol,
    seed: u64,
    statements: &mut Vec<SentStatement>,
) {
    let mut prng = Xoroshiro128::from_seed(seed);
    let mut at = 0;
    for _ in 0..STEPS_MAX {
        // Behind the last command the script ends.
        let Some(command) = script.commands.get(at) else { return };
        let mut eval = |expr: &script::Expr| expr.eval(&variables, &mut prng, &mut |_| {}).ok();
        at = match &command.kind {
            CommandKind::Sql { template, .. } => {
                statements.push(SentStatement::of(template, &variables, protocol));
                script.next(at)
            }
            CommandKind::Set { target: SetVariable::Slot(slot), expr } => {
                // The value rests on a result, which is not known.
                let Some(value) = eval(expr) else { return };
                variables.set(*slot, value);
                script.next(at)
            }
            CommandKind::SetRow(_) => {
                if let Some(Some(row)) = rows.get(at) {
                    row.set(&mut variables, &mut prng);
                }
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
fn explain(client: &mut Client, statement: &SentStatement) -> Option<QueryPlan> {
    let json = explain_json(client, statement, "FORMAT JSON").ok()?;
    plan(&json["Plan"])
}

/// What EXPLAIN with these options, FORMAT JSON among them, says of a statement: `QueryPlan` and its neighbours. A prepared
/// statement is planned as in a session that has executed it often.
///
/// # Errors
/// If the server refuses it. An answer that is no JSON is null.
pub(crate) fn explain_json(
    client: &mut Client,
    statement: &SentStatement,
    options: &str,
) -> Result<Value, postgres::Error> {
    let Some((text, values)) = &statement.prepared else {
        return explained(client, options, &statement.text);
    };
    client.batch_execute(&format!("PREPARE pgrig_plan AS {text}"))?;
    let execute = match values.as_slice() {
        [] => "EXECUTE pgrig_plan".to_owned(),
        values => format!("EXECUTE pgrig_plan ({})", values.join(", ")),
    };
    // To explain an execution counts as one.
    for _ in 0..CUSTOM_PLANS {
        explained(client, "FORMAT JSON", &execute)?;
    }
    let kept = explained(client, options, &execute);
    client.batch_execute("DEALLOCATE pgrig_plan")?;
    kept
}

fn explained(
    client: &mut Client,
    options: &str,
    statement: &str,
) -> Result<Value, postgres::Error> {
    let said = client.simple_query(&format!("EXPLAIN ({options}) {statement}"))?;
    let lines = said.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(read(&lines.collect::<Vec<_>>().join("\n")))
}

/// Reads what EXPLAIN has said: the first of its plans, with its neighbours; null where there is none.
pub(crate) fn read(json: &str) -> Value {
    serde_json::from_str::<Value>(json).map_or(Value::Null, |mut json| json[0].take())
}

fn plan(root: &Value) -> Option<QueryPlan> {
    let mut steps = Vec::new();
    add(root, 0, &mut steps);
    let number = |key: &str| root[key].as_f64();
    Some(QueryPlan { cost: number("Total Cost")?, rows: number("Plan Rows")?, steps })
}

/// The type of a node of EXPLAIN's JSON, its index and its table.
pub(crate) fn node_name(node: &Value) -> String {
    let text = |key: &str| node[key].as_str();
    let mut name = text("Node Type").unwrap_or("?").to_owned();
    if let Some(index) = text("Index Name") {
        name.push_str(&format!(" using {index}"));
    }
    if let Some(relation) = text("Relation Name") {
        name.push_str(&format!(" on {relation}"));
    }
    name
}

fn add(node: &Value, depth: usize, steps: &mut Vec<String>) {
    steps.push("  ".repeat(depth) + &node_name(node));
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
        assert_eq!(plan(&json), Some(QueryPlan { cost: 12.5, rows: 1.0, steps }));
        assert_eq!(plan(&Value::Null), None);
    }

    #[test]
    fn a_script_is_followed_with_its_variables() {
        let check = |text: &str, expected: &[&str]| {
            let mut names = VariableNames::default();
            let syntax = script::ScriptSyntax::Current;
            let script = ParsedScript::parse("one", text, syntax, &mut names).expect("a script");
            let mut statements = Vec::new();
            one(&script, &[], Variables::new(&names), Protocol::Prepared, 1, &mut statements);
            let seen: Vec<&str> = statements.iter().map(|one| one.text.as_str()).collect();
            assert_eq!(seen, expected, "{text}");
            let has_values = |one: &SentStatement| {
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
