//! Mistakes of a study that its own text does not show: settings that the server refuses, scripts
//! that cannot be parsed, variables that nothing sets.

use std::collections::{BTreeMap, BTreeSet};

use lab::Installation;
use load::{LoadError, RowTables};
use script::{
    CommandKind, HistoryNote, ParsedScript, ScriptSyntax, SetVariable, VariableNames, VariableSlot,
};
use spec::{ScriptText, Study, TopologyNode, VariableValues};

use crate::fit::programs::StudyPrograms;
use crate::fit::versions;
use crate::script_rows;

/// The mistakes, each in one line with its place.
pub fn mistakes(study: &Study, programs: &StudyPrograms) -> std::io::Result<Vec<String>> {
    let mut mistakes = settings(study, programs)?;
    let scripts = scripts(study);
    for found in scripts {
        if !mistakes.contains(&found) {
            mistakes.push(found);
        }
    }
    Ok(mistakes)
}

/// Asks `postgres -C` of each node's programs with each setting; those of extensions are known only once these are loaded.
/// A point that needs a later version is left out.
fn settings(study: &Study, programs: &StudyPrograms) -> std::io::Result<Vec<String>> {
    let major = |node: &TopologyNode| programs.of(node).map(|one| one.version().major);
    let points = study.points.iter().filter(|point| versions::misfit(point, major).is_none());
    let nodes: Vec<&TopologyNode> = points.flat_map(|point| &point.topology.nodes).collect();
    let asked = |installation: &Installation| -> BTreeSet<(&str, &str)> {
        let nodes = nodes.iter().filter(|node| programs.of(node) == Some(installation));
        let settings = nodes.flat_map(|node| node.settings.iter());
        settings.filter(|(name, _)| !name.contains('.')).collect()
    };
    let told = programs.iter().map(|installation| refused(installation, asked(installation)));
    Ok(told.collect::<std::io::Result<Vec<_>>>()?.concat())
}

fn refused(
    installation: &Installation,
    settings: BTreeSet<(&str, &str)>,
) -> std::io::Result<Vec<String>> {
    let mut told = Vec::new();
    for once in together(settings.into_iter()) {
        if installation.refusal(&once)?.is_none() {
            continue;
        }
        for (name, value) in once {
            if let Some(said) = installation.refusal(&[(name, value)])? {
                told.push(format!("setting {name} = {value}: {}", server_words(&said)));
            }
        }
    }
    Ok(told)
}

/// Lists of settings that have each name once: a program that starts for each of forty takes half a second.
fn together<'a>(asked: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Vec<(&'a str, &'a str)>> {
    let mut lists: Vec<Vec<(&str, &str)>> = Vec::new();
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, value) in asked {
        let list = values.entry(name).or_default();
        if *list == lists.len() {
            lists.push(Vec::new());
        }
        lists[*list].push((name, value));
        *list += 1;
    }
    lists
}

/// The text after `FATAL:`, with its hint.
fn server_words(said: &str) -> String {
    let after = |label: &str| {
        let line = said.lines().find_map(|line| line.split_once(label))?;
        Some(line.1.trim().to_owned())
    };
    let what = after("FATAL:").unwrap_or_else(|| said.trim().to_owned());
    match after("HINT:") {
        Some(hint) => format!("{what} ({hint})"),
        None => what,
    }
}

fn scripts(study: &Study) -> Vec<String> {
    let mut mistakes = Vec::new();
    for point in &study.points {
        if let Some(script) = &point.data.script {
            mistakes.extend(in_script(script, ScriptSyntax::Current, &[&point.data.variables]));
        }
        for workload in &point.workloads {
            for script in &workload.scripts {
                let known = [&point.data.variables, &workload.variables];
                mistakes.extend(in_script(&script.text(), script.syntax, &known));
            }
            mistakes.extend(in_rows(&workload.scripts));
        }
    }
    mistakes
}

/// What does not fit of the rows that scripts draw from, as far as no server needs to be asked.
fn in_rows(scripts: &[spec::ScriptShare]) -> Vec<String> {
    let tables = match RowTables::read(&script_rows::of(scripts)) {
        Ok(tables) => tables,
        Err(error) => return vec![with_hint(&error)],
    };
    let wrong = scripts.iter().filter_map(|script| {
        let text = script.text();
        let parsed =
            ParsedScript::parse(&text.name, &text.text, script.syntax, &mut VariableNames::new())
                .ok()?;
        tables.pickers(&parsed).err().map(|error| with_hint(&error))
    });
    wrong.collect()
}

fn with_hint(error: &LoadError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

fn in_script(
    text: &ScriptText,
    syntax: ScriptSyntax,
    variables: &[&VariableValues],
) -> Vec<String> {
    let mut names = VariableNames::default();
    let script = match ParsedScript::parse(&text.name, &text.text, syntax, &mut names) {
        Ok(script) => script,
        Err(error) => {
            // Not every error has a hint.
            let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
            return vec![format!("{error}{}", hint.unwrap_or_default())]; // As above.
        }
    };
    let mut set: BTreeSet<String> =
        variables.iter().flat_map(|known| known.keys().cloned()).collect();
    set.extend(BUILT_IN.map(str::to_owned));
    let mut prefixes: Vec<String> = Vec::new();
    let mut used: BTreeMap<VariableSlot, u32> = BTreeMap::new();
    let mut wrong: Vec<String> = Vec::new();
    for line in &script.strays {
        let why = "a note of a history must stand before an SQL statement";
        wrong.push(format!("{}:{line}: {why}", text.name));
    }
    for command in &script.commands {
        for slot in command.kind.reads() {
            used.entry(slot).or_insert(command.line);
        }
        for note in &command.notes {
            match HistoryNote::parse(note, &mut names) {
                Ok(note) => {
                    note.reads().into_iter().for_each(|slot| {
                        used.entry(slot).or_insert(command.line);
                    });
                }
                Err(why) => wrong.push(format!("{}:{}: {why}", text.name, command.line)),
            }
        }
        match &command.kind {
            CommandKind::Sql { capture, .. } => {
                prefixes.extend(capture.iter().map(|capture| capture.prefix().to_owned()));
            }
            CommandKind::SetRow(row) => {
                set.extend(row.names.iter().map(|name| String::from(&**name)));
            }
            kind => set.extend(target(kind).map(|slot| names.name(slot).into_owned())),
        }
    }
    // What a query's columns are called is known only when it is run.
    let is_set = |name: &str| {
        set.contains(name) || prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    // The minutes of a time, as in '12:30'.
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let undefined = used.into_iter().filter_map(|(slot, line)| {
        let name = names.name(slot);
        let is_undefined = !is_set(&name) && !is_number(&name);
        is_undefined.then(|| format!("{}:{line}: nothing sets the variable :{name}", text.name))
    });
    wrong.extend(undefined);
    wrong
}

/// The variable that a meta-command sets.
fn target(kind: &CommandKind) -> Option<VariableSlot> {
    match kind {
        CommandKind::Set { target: SetVariable::Slot(slot), .. }
        | CommandKind::SetShell { target: SetVariable::Slot(slot), .. } => Some(*slot),
        _ => None,
    }
}

/// VariableValues that pgbench sets, and those that the rig gives to scripts that keep a ledger or a
/// history.
const BUILT_IN: [&str; 9] = [
    "scale",
    "client_id",
    "random_seed",
    "default_seed",
    "ledger_client",
    "ledger_seq",
    "ledger_chain",
    "history_value",
    "history_ms",
];

#[cfg(test)]
mod tests {
    use super::*;
    use script::{RowSource, RowSourceKind};
    use spec::ScriptSource;

    #[test]
    fn variables_that_nothing_sets_are_found() {
        let known = VariableValues::from([("rows".to_owned(), "1".to_owned())]);
        let check = |text: &str, expected: &[&str]| {
            let script = ScriptText { name: "a.sql".to_owned(), text: text.to_owned() };
            assert_eq!(in_script(&script, ScriptSyntax::Current, &[&known]), expected, "{text}");
        };
        check("SELECT :rows, :client_id, a::int, '12:30';", &[]);
        check("\\set x 1\nSELECT :x;", &[]);
        check("SELECT 1 AS a \\gset p_\nSELECT :p_a;", &[]);
        check("\\set x :rows + 1\n\\if :x > 1\n\\sleep :x ms\n\\endif\nSELECT 1;", &[]);
        let nope = "a.sql:1: nothing sets the variable :nope";
        check("\\set x :nope + 1\nSELECT :x;", &[nope]);
        check("\\if :nope\nSELECT 1;\n\\endif", &[nope]);
        check("\\sleep :nope ms\nSELECT 1;", &[nope]);
        check("\\shell true :nope\nSELECT 1;", &[nope]);
        check(
            "\\if 0\nSELECT 1;\n\\elif :nope\nSELECT 2;\n\\endif",
            &[&nope.replace(":1:", ":3:")],
        );
        check("SELECT 1;\nSELECT :nope;", &["a.sql:2: nothing sets the variable :nope"]);
        assert_eq!(
            in_script(
                &ScriptText { name: "b.sql".to_owned(), text: "\\set x (1".to_owned() },
                ScriptSyntax::Current,
                &[]
            )
            .len(),
            1
        );
    }

    #[test]
    fn rows_that_do_not_fit_their_script_are_found() {
        let check = |rows: &str, expected: &[&str]| {
            let text = "\\setrow a, b file v.csv\nSELECT :'a', :b;\n";
            let named = |name: &str, text: &str| ScriptText {
                name: name.to_owned(),
                text: text.to_owned(),
            };
            let file = named("a.sql", text);
            assert_eq!(in_script(&file, ScriptSyntax::Current, &[]), Vec::<String>::new());
            let source = RowSource { kind: RowSourceKind::File, path: "v.csv".to_owned() };
            let script = spec::ScriptShare {
                source: ScriptSource::File(file),
                weight: 1,
                syntax: ScriptSyntax::Current,
                rows: vec![(source, named("v.csv", rows))],
            };
            assert_eq!(in_rows(&[script]), expected, "{rows}");
        };
        check("x,y\n1,2\n", &[]);
        let columns = "a.sql:1: v.csv: \\setrow names 2 variables, but there are 1 columns: x \
                       (name a variable for each column, in their order; a column of weights needs none)";
        check("x\n1\n", &[columns]);
    }

    #[test]
    fn the_servers_words_are_kept_with_their_hint() {
        let said =
            "2026 [1] FATAL:  invalid value for parameter \"a\": \"b\"\nx HINT:  Available: c.\n";
        assert_eq!(server_words(said), "invalid value for parameter \"a\": \"b\" (Available: c.)");
    }
}
