//! A session without a server: runs meta-commands, collects what SQL would be sent.

use std::process::Command;

use super::listener::Statement;
use script::{
    CommandKind, Expr, ParsedScript, Protocol, SetVariable, ShellCommand, SqlTemplate, Value,
    VariableNames, VariableSlot, Variables, Xoroshiro128,
};

/// What a session did.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Done {
    /// What `debug()` printed.
    pub(crate) debug: Vec<String>,
    /// SQL in the order of sending: the text and, unless the protocol is simple, the parameters.
    pub(crate) sent: Vec<Statement>,
    /// Why it stopped.
    pub(crate) error: Option<String>,
}

/// Run `script` once.
pub(crate) fn run(
    script: &ParsedScript,
    protocol: Protocol,
    variables: &mut Variables,
    prng: &mut Xoroshiro128,
) -> Done {
    let mut done = Done::default();
    let mut at = 0;
    while at < script.commands.len() {
        match step(script, at, protocol, variables, prng, &mut done) {
            Ok(next) => at = next,
            Err(error) => {
                done.error = Some(error);
                break;
            }
        }
    }
    done
}

/// Do the command at `at`; the next one's index or why there is none.
fn step(
    script: &ParsedScript,
    at: usize,
    protocol: Protocol,
    variables: &mut Variables,
    prng: &mut Xoroshiro128,
    done: &mut Done,
) -> Result<usize, String> {
    let mut debug = |text: &str| done.debug.push(text.to_owned());
    let mut eval = |expr: &Expr, variables: &Variables| {
        expr.eval(variables, prng, &mut debug).map_err(|error| error.to_string())
    };
    match &script.commands[at].kind {
        CommandKind::Sql { template, .. } => done.sent.push(send(template, protocol, variables)),
        CommandKind::Set { target, expr } => {
            let value = eval(expr, variables)?;
            variables.set(slot(&script.commands[at], target)?, value);
        }
        CommandKind::If { condition, otherwise }
        | CommandKind::Elif { condition, otherwise, .. } => {
            let is_true = eval(condition, variables)?.is_true();
            return Ok(if is_true { script.next(at) } else { *otherwise });
        }
        CommandKind::Sleep(sleep) => {
            sleep.time_us(variables).map_err(|error| error.to_string())?;
        }
        CommandKind::Shell(command) => {
            shell(command, variables)?;
        }
        CommandKind::SetShell { target, command } => {
            let output = shell(command, variables)?;
            let number = command.result(&output).map_err(|error| error.to_string())?;
            variables.set(slot(&script.commands[at], target)?, Value::Int(number));
        }
        _ => {}
    }
    Ok(script.next(at))
}

fn slot(command: &script::ScriptCommand, target: &SetVariable) -> Result<VariableSlot, String> {
    match target {
        SetVariable::Slot(slot) => Ok(*slot),
        SetVariable::Invalid(name) => {
            Err(format!("{}: invalid variable name: \"{name}\"", command.written()))
        }
    }
}

fn send(template: &SqlTemplate, protocol: Protocol, variables: &Variables) -> Statement {
    let mut text = Vec::new();
    let mut parameters = Vec::new();
    if protocol == Protocol::Simple {
        template.write_simple(variables, &mut text);
    } else {
        let parameterized = template.parameterized().unwrap();
        text.extend_from_slice(parameterized.text);
        for slot in parameterized.parameters.iter().map(|one| &one.slot) {
            let mut parameter = Vec::new();
            let defined = variables.write(*slot, &mut parameter);
            parameters.push(defined.then_some(parameter));
        }
    }
    (text, parameters)
}

fn shell(command: &ShellCommand, variables: &Variables) -> Result<Vec<u8>, String> {
    let line = command.line(variables).map_err(|error| error.to_string())?;
    let line = String::from_utf8(line).expect("the tests' command lines are text");
    Ok(Command::new("sh").args(["-c", &line]).output().expect("sh runs").stdout)
}

/// Variables as pgbench sets them at the start of client `client`.
pub(crate) fn startup(
    names: &VariableNames,
    client: i64,
    random_seed: u64,
    default_seed: i64,
) -> Variables {
    let mut variables = Variables::new(names);
    variables.set(script::VariableSlot::CLIENT_ID, Value::Int(client));
    variables.set(script::VariableSlot::SCALE, Value::Int(1));
    variables.set(script::VariableSlot::RANDOM_SEED, Value::Int(random_seed as i64));
    variables.set(script::VariableSlot::DEFAULT_SEED, Value::Int(default_seed));
    variables
}
