//! A workload made ready to run: its scripts parsed, its statements numbered.

use std::sync::Arc;

use script::{
    CommandKind, HistoryNote, ParsedScript, RowPicker, RowTable, TemplateParameter, Value,
    VariableNames, VariableSlot, Variables,
};

use crate::{
    ClientGroup, LedgerTables, LoadError, Protocol, RetryPolicy, RowTables, ShellUser,
    ledger_slots::LedgerSlots,
    ledger_statements::{self, LedgerStatement},
    notes::{self, HistorySlots},
};

/// A workload as sessions see it: read by every lane, written by none.
pub(crate) struct Program {
    pub(crate) scripts: Vec<ProgramScript>,
    pub(crate) names: VariableNames,
    pub(crate) variables: Variables,
    /// Slots of the ledger's variables, if a script numbers its transactions.
    pub(crate) ledger: Option<LedgerSlots>,
    /// The tables of its ledger, where they are known.
    pub(crate) ledger_tables: Option<LedgerTables>,
    /// A script sets `synchronous_commit` itself: for whom its commits wait, the session does not tell.
    pub(crate) sets_synchronous_commit: bool,
    /// The variables of its history, where it keeps one.
    pub(crate) history: Option<HistorySlots>,
    /// Unless `-D client_id` was given.
    pub(crate) sets_client_id: bool,
    /// Statements of all scripts in order, as they are prepared.
    pub(crate) statements: Vec<Statement>,
    /// The sums of the weights of the scripts up to each of them.
    pub(crate) weights: Box<[i64]>,
    pub(crate) protocol: Protocol,
    pub(crate) describe: bool,
    pub(crate) tries_max: u32,
    pub(crate) go_on: bool,
    /// The client's own rule for retries.
    pub(crate) retry: Option<RetryPolicy>,
    /// A successful transaction that ends later than so long after it was due has missed its deadline.
    pub(crate) deadline_ns: Option<u64>,
    pub(crate) connect_each: bool,
    /// True if a login derives its keys anew.
    pub(crate) derives_keys: bool,
    /// The most that a client keeps of one message of the server, in bytes.
    pub(crate) message_bytes_max: usize,
    pub(crate) latency_limit_ns: Option<u64>,
    pub(crate) open_loop: bool,
    pub(crate) time_each_command: bool,
    pub(crate) verbose_errors: bool,
    pub(crate) debug: bool,
    pub(crate) shell: ShellUser,
    /// True if statements are prepared as soon as a client is connected.
    pub(crate) prepares_early: bool,
    /// For `-t`: transactions of each client; none where time is the limit.
    pub(crate) transactions: Option<u64>,
}

pub(crate) struct ProgramScript {
    pub(crate) script: ParsedScript,
    /// For each command, its statement.
    pub(crate) statements: Vec<Option<usize>>,
    /// For each command, the way in which it draws a row; empty if none does.
    pub(crate) rows: Vec<Option<RowPicker>>,
    /// True if its transactions are in the ledger: it writes `:ledger_seq`.
    pub(crate) is_numbered: bool,
    /// The statements of each command as the ledger sees them; empty where its transactions are not in one.
    pub(crate) ledger_statements: Vec<Box<[LedgerStatement]>>,
    /// Effect of each command on the history; empty if none has any, or no history is kept.
    pub(crate) notes: Vec<Box<[HistoryNote]>>,
}

/// One SQL command as the extended protocols send it.
#[derive(Debug)]
pub(crate) struct Statement {
    /// Position among the statements of the program.
    pub(crate) number: usize,
    /// Name on the server, `P_0` and so on, as pgbench calls them; empty for the unnamed one.
    pub(crate) name: String,
    pub(crate) sql: Vec<u8>,
    pub(crate) parameters: Vec<TemplateParameter>,
    /// The effect that it has on a block.
    pub(crate) effect: Effect,
}

/// The effect of a statement on a transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It begins one, and does nothing else.
    Begins,
    /// It ends one, or several statements are joined and one of them may: where its answer is lost, the
    /// outcome of the whole block is unknown.
    Commits,
    /// Neither.
    Other,
}

impl Program {
    pub(crate) fn new(workload: &ClientGroup, common: &CommonSettings) -> Result<Self, LoadError> {
        let mut names = VariableNames::new();
        let mut scripts = Vec::new();
        let mut statements = Vec::new();
        let rows = RowTables::read(&workload.rows)?;
        let mut total = 0;
        let mut weights = Vec::new();
        for source in &workload.scripts {
            let (text, syntax) = (source.text.as_bytes(), source.syntax);
            let script = ParsedScript::parse(&source.name, text, syntax, &mut names)?;
            let numbers = number(&script, workload.protocol, &mut statements)?;
            total += i64::from(source.weight);
            weights.push(total);
            scripts.push(ProgramScript {
                rows: rows.pickers(&script)?,
                script,
                statements: numbers,
                is_numbered: false,
                ledger_statements: Vec::new(),
                notes: Vec::new(),
            });
        }
        let ledger = LedgerSlots::of(&mut names);
        for script in &mut scripts {
            script.is_numbered = ledger.is_some_and(|slots| writes(&script.script, slots.seq));
        }
        let mut history = None;
        if common.keeps_history {
            for script in &mut scripts {
                let notes = notes::of_script(&script.script, &mut names)?;
                if notes.iter().any(|notes| !notes.is_empty()) {
                    history = Some(HistorySlots::of(&mut names));
                    script.notes = notes;
                }
            }
        }
        for script in &mut scripts {
            if script.is_numbered || !script.notes.is_empty() {
                let tables = workload.ledger.as_ref();
                script.ledger_statements = ledger_statements::of_script(&script.script, tables);
            }
        }
        let variables = initial(workload, &mut names, rows.tables()?, common);
        Ok(Program {
            weights: weights.into(),
            scripts,
            sets_client_id: !is_given(workload, "client_id"),
            // With `--debug` they are prepared where pgbench prepares them, and tells of it.
            prepares_early: workload.protocol == Protocol::Prepared
                && !workload.connect_each
                && !common.debug
                && !statements.iter().any(|statement| changes_session(&statement.sql)),
            names,
            variables,
            ledger,
            ledger_tables: workload.ledger.clone(),
            sets_synchronous_commit: workload
                .scripts
                .iter()
                .any(|script| script.text.contains("synchronous_commit")),
            history,
            statements,
            protocol: workload.protocol,
            describe: workload.describe,
            tries_max: workload.on_error.tries_max,
            go_on: workload.on_error.go_on,
            retry: workload.retry.clone(),
            deadline_ns: workload.deadline_us.map(|us| us * 1_000),
            connect_each: workload.connect_each,
            derives_keys: workload.connect_each && !workload.caches_keys,
            message_bytes_max: common.message_bytes_max,
            latency_limit_ns: workload.latency_limit_us.map(|us| us * 1_000),
            open_loop: workload.pace != crate::Pace::Closed,
            time_each_command: common.statements,
            verbose_errors: common.verbose_errors,
            debug: common.debug,
            shell: workload.shell,
            transactions: common.transactions,
        })
    }

    /// The age beyond which a slot of the schedule is not started any more; none for no limit.
    pub(crate) fn stale_ns(&self) -> Option<u64> {
        let given_up = self.retry.as_ref().and_then(|retry| retry.give_up.after_us);
        let given_up = given_up.map(|us| us.saturating_mul(1_000));
        [self.latency_limit_ns, given_up].into_iter().flatten().min()
    }
}

/// Settings of the plan that are the same for every workload.
pub(crate) struct CommonSettings {
    pub(crate) random_seed: i64,
    pub(crate) default_seed: i64,
    pub(crate) statements: bool,
    pub(crate) verbose_errors: bool,
    pub(crate) debug: bool,
    pub(crate) transactions: Option<u64>,
    pub(crate) keeps_history: bool,
    pub(crate) message_bytes_max: usize,
}

/// The most that all clients of a load keep of the messages that are arriving, in bytes.
const MESSAGES_BYTES_MAX: usize = 1 << 30;

/// The share of each of so many clients, within bounds that no honest answer needs to pass: a value of
/// `\gset` has 64 MiB at most.
pub(crate) fn message_bytes_max(clients: u64) -> usize {
    let clients = usize::try_from(clients.max(1)).unwrap_or(usize::MAX);
    (MESSAGES_BYTES_MAX / clients).clamp(8 << 10, 64 << 20)
}

/// Numbers the SQL commands of `script` on from those that came before.
fn number(
    script: &ParsedScript,
    protocol: Protocol,
    statements: &mut Vec<Statement>,
) -> Result<Vec<Option<usize>>, LoadError> {
    let mut numbers = Vec::with_capacity(script.commands.len());
    for command in &script.commands {
        let CommandKind::Sql { template, .. } = &command.kind else {
            numbers.push(None);
            continue;
        };
        let number = statements.len();
        let (sql, parameters) = match protocol {
            Protocol::Simple => (Vec::new(), Vec::new()),
            Protocol::Extended | Protocol::Prepared => {
                let statement = template.parameterized().map_err(|error| LoadError::Statement {
                    script: script.name.clone(),
                    why: error.to_string(),
                })?;
                (statement.text.to_vec(), statement.parameters.to_vec())
            }
        };
        let name = match protocol {
            Protocol::Prepared => format!("P_{number}"),
            Protocol::Simple | Protocol::Extended => String::new(),
        };
        statements.push(Statement {
            number,
            name,
            sql,
            parameters,
            effect: effect(template.text()),
        });
        numbers.push(Some(number));
    }
    Ok(numbers)
}

/// True if a statement of the script contains this variable.
fn writes(script: &ParsedScript, slot: VariableSlot) -> bool {
    script.commands.iter().any(|command| match &command.kind {
        CommandKind::Sql { template, .. } => template.slots().contains(&slot),
        _ => false,
    })
}

fn effect(sql: &[u8]) -> Effect {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    let text = after_comments(&text).trim_end().trim_end_matches(';');
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    if text.contains(';') || begins(&["commit", "end", "prepare transaction"]) {
        return Effect::Commits;
    }
    match begins(&["begin", "start transaction"]) {
        true => Effect::Begins,
        false => Effect::Other,
    }
}

/// A statement without the blanks and comments before it.
fn after_comments(text: &str) -> &str {
    let text = text.trim_start();
    let rest = match (text.strip_prefix("--"), text.strip_prefix("/*")) {
        (Some(line), _) => line.split_once('\n'),
        (_, Some(comment)) => comment.split_once("*/"),
        _ => None,
    };
    rest.map_or(text, |(_, rest)| after_comments(rest))
}

/// True if a statement that was prepared before this one may differ from one that is prepared after
/// it, or be gone.
fn changes_session(sql: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    let begins = |word: &&str| text.trim_start().starts_with(*word);
    text.contains("set_config") || ["set", "reset", "discard", "deallocate"].iter().any(begins)
}

fn is_given(workload: &ClientGroup, name: &str) -> bool {
    workload.variables.iter().any(|(given, _)| given == name)
}

fn initial(
    workload: &ClientGroup,
    names: &mut VariableNames,
    tables: Arc<[Arc<RowTable>]>,
    common: &CommonSettings,
) -> Variables {
    // Every name has its slot before the first session copies the variables.
    for (name, _) in &workload.variables {
        names.intern(name);
    }
    let mut variables = Variables::new(names).with_tables(tables);
    variables.set(VariableSlot::RANDOM_SEED, Value::Int(common.random_seed));
    variables.set(VariableSlot::DEFAULT_SEED, Value::Int(common.default_seed));
    for (name, value) in &workload.variables {
        variables.set_text(names.intern(name), value);
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadScript;

    /// What logging in costs is what it costs pgbench, where connections are part of the load.
    #[test]
    fn keys_are_derived_for_each_connection_where_each_is_measured() {
        let check = |connect_each, caches_keys, expected| {
            let script = LoadScript {
                name: "s".to_owned(),
                text: "SELECT 1;\n".to_owned(),
                weight: 1,
                syntax: script::ScriptSyntax::Current,
            };
            let mut workload =
                ClientGroup::new("w", String::new(), vec![script], 1, Protocol::Simple);
            (workload.connect_each, workload.caches_keys) = (connect_each, caches_keys);
            let common = CommonSettings {
                random_seed: 1,
                default_seed: 2,
                statements: false,
                verbose_errors: false,
                debug: false,
                transactions: None,
                keeps_history: false,
                message_bytes_max: 1,
            };
            let program = Program::new(&workload, &common).expect("a workload");
            assert_eq!(program.derives_keys, expected, "{connect_each} {caches_keys}");
        };
        check(false, false, false);
        check(true, false, true);
        check(true, true, false);
    }
}
