//! Any bytes as a script: it is parsed or refused, every jump stays inside, and everything that a
//! command could send can be written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use script::{
    CommandKind, ParsedScript, ScriptSyntax, SetVariable, VariableNames, Variables, Xoroshiro128,
};

fuzz_target!(|text: &[u8]| {
    for syntax in [ScriptSyntax::Current, ScriptSyntax::Pgbench, ScriptSyntax::NineX] {
        let mut names = VariableNames::new();
        match ParsedScript::parse("fuzz.sql", text, syntax, &mut names) {
            Ok(script) => exercise(&script, &names),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});

fn exercise(script: &ParsedScript, names: &VariableNames) {
    let mut variables = Variables::new(names);
    let mut prng = Xoroshiro128::from_seed(1);
    let mut out = Vec::new();
    let end = script.commands.len();
    for (at, command) in script.commands.iter().enumerate() {
        let next = script.next(at);
        assert!(at < next && next <= end);
        match &command.kind {
            CommandKind::Sql { template, .. } => {
                template.write_simple(&variables, &mut out);
                if let Ok(parameterized) = template.parameterized() {
                    let parameters = parameterized.parameters.iter();
                    assert!(parameters.clone().all(|one| one.slot.index() < names.len()));
                }
            }
            CommandKind::Set { target, expr } => {
                if let (Ok(value), SetVariable::Slot(slot)) =
                    (expr.eval(&variables, &mut prng, &mut |_| {}), target)
                {
                    variables.set(*slot, value);
                }
            }
            CommandKind::SetRow(row) => {
                assert!(row.targets.iter().all(|slot| slot.index() < names.len()));
                assert_eq!(row.targets.len(), row.names.len());
            }
            CommandKind::SetShell { command, .. } | CommandKind::Shell(command) => {
                let _ = command.line(&variables);
            }
            CommandKind::Sleep(sleep) => {
                let _ = sleep.time_us(&variables);
            }
            CommandKind::If { condition, otherwise }
            | CommandKind::Elif { condition, otherwise, .. } => {
                assert!(at < *otherwise && *otherwise <= end);
                let _ = condition.eval(&variables, &mut prng, &mut |_| {});
            }
            _ => {}
        }
        out.clear();
    }
}
