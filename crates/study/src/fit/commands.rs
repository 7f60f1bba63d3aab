//! Commands of the operating system that a study runs, for a person to read before running it.
//!
//! Limits: SQL that puts a command together while it runs is not seen.

use std::collections::BTreeSet;

use script::{CommandKind, ParsedScript, RowSourceKind, ScriptSyntax, VariableNames};
use spec::{Action, Settings, Study, TrialPoint};

/// The places of the commands of these points, given by their indices, each once, in the order of the study.
pub fn commands(study: &Study, points: impl IntoIterator<Item = usize>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let points: BTreeSet<usize> = points.into_iter().collect();
    for point in points.into_iter().map(|point| &study.points[point]) {
        let nodes = point.topology.nodes.iter();
        found.extend(nodes.flat_map(|node| in_settings(&node.settings)));
        let data = &point.data;
        let buckets = data.buckets.iter().flat_map(|buckets| [&buckets.template, &buckets.fill]);
        // psql runs this one.
        if let Some(script) = &data.script {
            found.extend(in_psql(&script.name, &script.text));
        }
        for script in data.script.iter().chain(buckets) {
            found.extend(in_script(&script.name, &script.text, ScriptSyntax::Current));
        }
        for workload in &point.workloads {
            found.extend(in_settings(&workload.session));
            for script in &workload.scripts {
                let text = script.text();
                found.extend(in_script(&text.name, &text.text, script.syntax));
                let queries =
                    script.rows.iter().filter(|(source, _)| source.kind == RowSourceKind::Query);
                for (_, query) in queries {
                    found.extend(in_script(&query.name, &query.text, ScriptSyntax::Current));
                }
            }
        }
        let actions = point.timeline.iter().filter_map(|timed| match &timed.action {
            Action::Sql { node, sql } => Some((node.clone(), sql)),
            _ => None,
        });
        let steps = point.before.iter().map(|step| (step.on.to_string(), &step.sql));
        for (node, sql) in steps.chain(actions) {
            found.extend(in_script(&format!("SQL on {node}"), sql, ScriptSyntax::Current));
        }
        found.extend(in_machines(point));
    }
    let mut seen = BTreeSet::new();
    found.retain(|place| seen.insert(place.clone()));
    found
}

/// The programs of machines, and the commands that the timeline runs on them.
fn in_machines(point: &TrialPoint) -> impl Iterator<Item = String> {
    let machines = point.topology.nodes.iter().filter_map(|node| Some((node, node.machine()?)));
    let programs = machines.flat_map(|(node, machine)| {
        machine.processes.iter().map(|process| {
            let as_root = if process.as_root { ", as root" } else { "" };
            format!("{} of {}{as_root}: {}", process.name, node.group, process.command.join(" "))
        })
    });
    let runs = point.timeline.iter().filter_map(|timed| match &timed.action {
        Action::Run { node, command } => Some(format!("on {node}: {}", command.join(" "))),
        _ => None,
    });
    programs.chain(runs)
}

/// Settings whose value is a command, or the path of a library that the server loads. A library without
/// a path was installed together with PostgreSQL or its packages.
fn in_settings(settings: &Settings) -> impl Iterator<Item = String> {
    let runs = |name: &str, value: &str| {
        let is_library = name.ends_with("_library") || name.ends_with("_libraries");
        name.ends_with("_command") || (is_library && value.contains('/'))
    };
    let settings = settings.iter().filter(move |(name, value)| runs(name, value));
    settings.map(|(name, value)| format!("setting {name} = {value}"))
}

fn in_script(name: &str, text: &str, syntax: ScriptSyntax) -> Vec<String> {
    let mut names = VariableNames::default();
    // Buckets' templates have marks that are no SQL, and are searched as one text.
    let Ok(script) = ParsedScript::parse(name, text, syntax, &mut names) else {
        return in_sql(text).then(|| name.to_owned()).into_iter().collect();
    };
    let runs = script.commands.iter().filter(|command| match &command.kind {
        CommandKind::Shell(_) | CommandKind::SetShell { .. } => true,
        CommandKind::Sql { template, .. } => {
            let mut sql = Vec::new();
            template.write_simple(&script::Variables::new(&names), &mut sql);
            in_sql(&String::from_utf8_lossy(&sql))
        }
        _ => false,
    });
    runs.map(|command| format!("{name}:{}", command.line)).collect()
}

/// The lines of a script for psql on which a command of psql's runs a program: `\!`, a text in backquotes,
/// a pipe.
fn in_psql(name: &str, text: &str) -> Vec<String> {
    let runs = |line: &str| {
        let Some(at) = line.find('\\') else { return false };
        let command = &line[at..];
        let lower = command.to_lowercase();
        command.contains("\\!")
            || command.contains('`')
            || command.contains('|')
            || (lower.contains("\\copy") && lower.contains("program"))
    };
    let lines = text.lines().zip(1..).filter(|(line, _)| runs(line));
    lines.map(|(_, number): (_, u32)| format!("{name}:{number}")).collect()
}

/// True if SQL runs a program (COPY … PROGRAM), makes a function in a language that may, loads a
/// library, or changes a setting that is a command.
fn in_sql(sql: &str) -> bool {
    let text = sql.to_lowercase();
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).any(|pair| match pair {
        ["from" | "to", "program"] => true,
        ["language", language] => *language == "c" || UNTRUSTED.contains(language),
        _ => false,
    });
    pairs || words.first() == Some(&"load") || words.iter().any(|word| word.ends_with("_command"))
}

/// Languages whose functions do what the server's user may.
const UNTRUSTED: [&str; 6] = ["plpython3u", "plpythonu", "plperlu", "pltclu", "plsh", "internal"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_commands_is_named_by_its_line() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(in_script("w.sql", text, ScriptSyntax::Current), expected, "{text}");
        };
        check("SELECT 1;\n\\sleep 1 ms\n", &[]);
        check("\\shell id > /tmp/who", &["w.sql:1"]);
        check("SELECT 1;\n\\setshell x id -u\n\\shell true", &["w.sql:2", "w.sql:3"]);
        check("COPY t FROM '/tmp/x';\ncopy t\n  to  Program 'sh';", &["w.sql:2"]);
        check("CREATE FUNCTION f() RETURNS int LANGUAGE plpython3u AS 'x';", &["w.sql:1"]);
        check("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';", &[]);
        check("LOAD 'x';\nALTER SYSTEM SET archive_command = 'id';", &["w.sql:1", "w.sql:2"]);
        check("DO $$ BEGIN COPY t TO PROGRAM 'id'; END $$;", &["w.sql:1"]);
    }

    #[test]
    fn what_psql_would_run_is_named_by_its_line() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(in_psql("i.sql", text), expected, "{text}");
        };
        check("\\if :{?x}\nSELECT 'a|b' || 'c';\n\\endif\n", &[]);
        check("SELECT 1;\n\\! id\n", &["i.sql:2"]);
        check("\\set who `id`\nSELECT 1 \\g |sh\n\\o | cat", &["i.sql:1", "i.sql:2", "i.sql:3"]);
        check("\\copy t FROM PROGRAM 'id'", &["i.sql:1"]);
    }

    #[test]
    fn settings_that_are_commands_are_named() {
        let check = |name: &str, value: &str, is_named: bool| {
            let settings = Settings::from_iter([(name, value)]);
            assert_eq!(in_settings(&settings).count(), usize::from(is_named), "{name}");
        };
        check("archive_command", "id", true);
        check("ssl_passphrase_command", "id", true);
        check("shared_preload_libraries", "/tmp/evil.so", true);
        check("shared_preload_libraries", "pg_stat_statements", false);
        check("archive_library", "a, ./evil", true);
        check("work_mem", "1/2", false);
    }
}
