//! A session without a server: runs meta-commands, collects what SQL would be sent.

use super::listener::Statement;
use script::{CommandKind, Names, Prng, Protocol, Script, Value, Variables};

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
    script: &Script,
    protocol: Protocol,
    variables: &mut Variables,
    prng: &mut Prng,
) -> Done {
    let mut done = Done::default();
    let mut at = 0;
    while let Some(command) = script.commands.get(at) {
        let mut debug = |text: &str| done.debug.push(text.to_owned());
        at = match &command.kind {
            CommandKind::Sql { template, .. } => {
                let mut text = Vec::new();
                let mut parameters = Vec::new();
                if protocol == Protocol::Simple {
                    template.write_simple(variables, &mut text);
                } else {
                    let parameterized = template.parameterized().unwrap();
                    text.extend_from_slice(parameterized.text);
                    for slot in parameterized.slots {
                        let mut parameter = Vec::new();
                        let defined = variables.write(*slot, &mut parameter);
                        parameters.push(defined.then_some(parameter));
                    }
                }
                done.sent.push((text, parameters));
                script.next(at)
            }
            CommandKind::Set { slot, expr } => match expr.eval(variables, prng, &mut debug) {
                Ok(value) => {
                    variables.set(*slot, value);
                    script.next(at)
                }
                Err(error) => {
                    done.error = Some(error.to_string());
                    return done;
                }
            },
            CommandKind::If { condition, otherwise }
            | CommandKind::Elif { condition, otherwise, .. } => {
                match condition.eval(variables, prng, &mut debug).map(Value::is_true) {
                    Ok(true) => script.next(at),
                    Ok(false) => *otherwise,
                    Err(error) => {
                        done.error = Some(error.to_string());
                        return done;
                    }
                }
            }
            _ => script.next(at),
        };
    }
    done
}

/// Variables as pgbench sets them at the start of client `client`.
pub(crate) fn startup(
    names: &Names,
    client: i64,
    random_seed: u64,
    default_seed: i64,
) -> Variables {
    let mut variables = Variables::new(names);
    variables.set(script::Slot::CLIENT_ID, Value::Int(client));
    variables.set(script::Slot::SCALE, Value::Int(1));
    variables.set(script::Slot::RANDOM_SEED, Value::Int(random_seed as i64));
    variables.set(script::Slot::DEFAULT_SEED, Value::Int(default_seed));
    variables
}
