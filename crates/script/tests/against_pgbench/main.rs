//! The same scripts through the real pgbench and through this crate.
//!
//! Expressions and random functions are compared by what `debug()` prints, errors by their text,
//! SQL by what arrives at a server that only listens. A real server is started once.
//!
//! Where pgbench's behaviour is undefined it is not compared: a boolean given to `abs`, SQL that
//! ends in a variable (pgbench reads past its end), two wrong characters in one expression (it
//! reports the last).

mod expressions;
mod mistakes;
mod seeds;
mod statements;
mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use script::{ParsedScript, Protocol, RandomSeeds, ScriptSyntax, VariableNames};
use support::session::{self, Done};

/// Run `text` once with one client through pgbench.
fn theirs(directory: &Path, text: &str, seed: u64, options: &[&str]) -> Output {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), text).expect("the script is written");
    let mut command = support::pgbench(directory);
    command.arg(format!("--random-seed={seed}")).args(["-c1", "-j1", "-t1", "-f"]);
    support::finish(command.arg(file.path()).args(options))
}

/// Run `text` once with the first client of seed `seed` here.
fn ours(text: &str, seed: u64, defines: &[(&str, &str)]) -> Done {
    let mut names = VariableNames::new();
    let script = ParsedScript::parse("t.sql", text, ScriptSyntax::Pgbench, &mut names)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let seeds = RandomSeeds::new(seed, 1, 1, None);
    let mut variables = session::startup(&names, 0, seed, seeds.default_seed);
    for (name, value) in defines {
        variables.set_text(names.intern(name), value);
    }
    session::run(&script, Protocol::Simple, &mut variables, &mut seeds.clients[0].clone())
}
