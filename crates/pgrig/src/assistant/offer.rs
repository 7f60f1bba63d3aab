//! Which commands are tools, which of their options an assistant has, and what is said of each.

use std::path::Path;

use mcp::{OfferedTool, ToolEffect};
use serde_json::{Map, Value, json};

use crate::arguments;
use crate::assistant::parameter::ToolParameter;

/// A command that an assistant can call.
pub(crate) struct AssistantTool {
    row: &'static ToolRow,
    parameters: Vec<ToolParameter>,
}

/// What a command does while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolWork {
    /// It prints what is there.
    Reads,
    /// It writes files.
    Writes,
    /// It loads a server: two such commands disturb each other.
    Loads,
}

/// A row of the table of tools.
struct ToolRow {
    name: &'static str,
    /// The command below `pgrig`.
    command: &'static [&'static str],
    work: ToolWork,
    effect: ToolEffect,
    /// Beside what the help says of the command.
    note: &'static str,
    /// Options that an assistant does not have, by their long names.
    left_out: &'static [&'static [&'static str]],
    /// Options that name a file, in whose place a call may have the text itself.
    texts: &'static [&'static str],
    /// Option of a call without a result in JSON.
    no_result: Option<&'static str>,
    /// The schema of the result.
    result: Option<&'static str>,
}

/// Files for CI.
const FOR_CI: &[&str] =
    &["junit", "github-summary", "github-output", "markdown", "benchmark-action", "bencher"];

/// Pages and figures while something runs.
const PAGES: &[&str] = &["serve", "metrics"];

/// What an inventory of hosts is for: it names commands that reach them.
const HOSTS: &[&str] = &["hosts", "push", "reach", "on-host-loss"];

/// Files of a benchmark.
const FILES: &[&str] = &["hdr", "html", "influx", "curve"];

/// The log of transactions.
const LOGS: &[&str] =
    &["log", "log-prefix", "sampling-rate", "aggregate-interval", "aggregate-last"];

/// How pgbench's tables are made. A comparison makes them in one way.
const TABLES: &[&str] = &[
    "initialize",
    "init-steps",
    "fillfactor",
    "foreign-keys",
    "partitions",
    "partition-method",
    "tablespace",
    "index-tablespace",
    "unlogged-tables",
    "quiet",
    "connections",
    "resume",
];

/// Builds of a repository, which run its programs.
const BUILDS: &[&str] = &["repo", "a-commit", "b-commit", "b-patch", "b-dirty", "build"];

/// Every tool. What is left out writes a file that the call names, or runs words of the call as a command; or it is for
/// people and CI, who read the same elsewhere.
static TOOLS: [ToolRow; 6] = [
    ToolRow {
        name: "show",
        command: &["show"],
        work: ToolWork::Reads,
        effect: ToolEffect::Reads,
        note: "Of a folder of records it lists them. Changes nothing, and runs nothing that a record holds.",
        left_out: &[FOR_CI, &["json", "printed"]],
        texts: &[],
        no_result: None,
        result: None,
    },
    ToolRow {
        name: "history",
        command: &["history", "show"],
        work: ToolWork::Reads,
        effect: ToolEffect::Reads,
        note: "The result has each value of each figure over time. Changes nothing.",
        left_out: &[&["json"]],
        texts: &[],
        no_result: None,
        result: None,
    },
    ToolRow {
        name: "check",
        command: &["check"],
        work: ToolWork::Reads,
        effect: ToolEffect::Reads,
        note: "Runs nothing of the study and changes nothing; postgres looks at its settings.",
        // An inventory names commands, and a folder of programs has any program.
        left_out: &[&["json", "pg-bin"], HOSTS],
        texts: &[],
        no_result: None,
        result: None,
    },
    ToolRow {
        name: "compare",
        command: &["compare"],
        work: ToolWork::Loads,
        effect: ToolEffect::Changes,
        note: "Proves or refutes a proposal: data (or data_text) makes the tables on both sides, file (or file_text) \
               is a statement that is loaded, and b_sql_text, as in CREATE INDEX …, or b_set is what B has beside A. \
               result.answer is the answer, result.pairs the figures with their intervals. Takes up to max_time, by \
               default 10 min; the least for an answer is about 1 min. Builds servers of its own and removes them; \
               with a_conninfo it loads yours.",
        left_out: &[
            FOR_CI,
            PAGES,
            TABLES,
            BUILDS,
            LOGS,
            HOSTS,
            &["json", "gate", "fail-on", "syntax", "as", "show-script", "DBNAME"],
        ],
        texts: &["a-sql", "b-sql", "data", "file"],
        no_result: Some("dry-run"),
        result: Some(include_str!("../../../../docs/show.schema.json")),
    },
    ToolRow {
        name: "bench",
        command: &["bench"],
        work: ToolWork::Loads,
        effect: ToolEffect::Changes,
        note: "Loads the server of dbname, or with own_server one that is built for this run. The scripts of the \
               load, and initialize, change its tables.",
        left_out: &[
            PAGES,
            FILES,
            LOGS,
            HOSTS,
            &["json", "as", "syntax", "show-script", "dbname", "server-cpus-command"],
        ],
        texts: &["file"],
        no_result: Some("initialize"),
        result: Some(include_str!("../../../../docs/bench.schema.json")),
    },
    ToolRow {
        name: "workload",
        command: &["workload", "make"],
        work: ToolWork::Writes,
        effect: ToolEffect::Adds,
        note: "Needs one of statements, from and log. Writes the new folder out, which compare takes as workload; its \
               coverage.md says what was left out. Reads the server of from or like, and changes nothing there.",
        left_out: &[],
        texts: &[],
        no_result: None,
        result: None,
    },
];

/// The tools that only read; with `may_run`, all.
pub(crate) fn tools(may_run: bool) -> Vec<AssistantTool> {
    let mut all = arguments::of_tools();
    all.build();
    let rows = TOOLS.iter().filter(|row| may_run || row.work == ToolWork::Reads);
    rows.map(|row| AssistantTool::of(row, &all)).collect()
}

/// What an assistant has to know of the tools as a whole.
pub(crate) fn instructions(may_run: bool, place: &Path) -> String {
    let runs = match may_run {
        true => {
            "To prove a proposal (an index, a setting), call compare and quote the ratio with its interval; \"cannot \
             tell\" is an answer, too. One load runs at a time."
        }
        false => {
            "This server only reads: to let it start servers and loads, its user starts it with --may-run."
        }
    };
    format!(
        "pgrig measures PostgreSQL: its answers are ratios with intervals, and verdicts. Paths begin at {}. A call has no \
         password: PGPASSWORD or a password file of this server's user gives it. {runs}",
        place.display()
    )
}

impl AssistantTool {
    fn of(row: &'static ToolRow, all: &clap::Command) -> AssistantTool {
        let find = |command, name: &&str| {
            clap::Command::find_subcommand(command, name).expect("a command of the table")
        };
        let command = row.command.iter().fold(all, find);
        let of = |one: &clap::Arg| ToolParameter::of(one, row.texts);
        let parameters = command.get_arguments().filter(|one| !row.leaves_out(one)).flat_map(of);
        AssistantTool { row, parameters: parameters.collect() }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.row.name
    }

    pub(crate) fn command(&self) -> &'static [&'static str] {
        self.row.command
    }

    pub(crate) fn work(&self) -> ToolWork {
        self.row.work
    }

    pub(crate) fn parameters(&self) -> &[ToolParameter] {
        &self.parameters
    }

    /// True if a call with these options has a result that is written into a file.
    pub(crate) fn has_result_file<'o>(&self, mut options: impl Iterator<Item = &'o str>) -> bool {
        self.row.result.is_some() && !options.any(|option| self.row.no_result == Some(option))
    }

    /// The tool as a client sees it.
    pub(crate) fn offered(&self) -> OfferedTool {
        let row = self.row;
        let all = arguments::of_tools();
        let about = all.find_subcommand(row.command[0]).and_then(clap::Command::get_about);
        let about = about.map(ToString::to_string).expect("each command is described");
        let properties = self.parameters.iter().map(|one| (one.name.clone(), one.schema()));
        let required = self.parameters.iter().filter(|one| one.is_required).map(|one| &one.name);
        OfferedTool {
            name: row.name.to_owned(),
            description: format!("{about}. {}", row.note),
            effect: row.effect,
            arguments: json!({
                "type": "object",
                "properties": Map::from_iter(properties),
                "required": required.collect::<Vec<_>>(),
                "additionalProperties": false,
            }),
            answer: row.answer(),
        }
    }
}

impl ToolRow {
    fn leaves_out(&self, one: &clap::Arg) -> bool {
        let name = one.get_long().unwrap_or(one.get_id().as_str());
        let is_answer = name == "help" || name == "version";
        is_answer || self.left_out.iter().any(|names| names.contains(&name))
    }

    /// The schema of an answer. The definitions of the result's own schema stand where it refers to them.
    fn answer(&self) -> Value {
        let parsed = self.result.map(|text| {
            serde_json::from_str::<Value>(text).expect("a schema of the manual is JSON")
        });
        let mut result = parsed.unwrap_or_else(|| json!({}));
        let definitions = result.as_object_mut().and_then(|result| {
            result.remove("$schema");
            result.remove("$defs")
        });
        let mut schema = json!({
            "type": "object",
            "properties": {
                "exit_code": {
                    "type": ["integer", "null"],
                    "description": "the command's exit code, null where a signal ended it",
                },
                "exit": { "type": "string", "description": "what the exit code means" },
                "result": match self.result {
                    Some(_) => json!({ "anyOf": [result, { "type": "null" }] }),
                    None => json!({ "description": "what the command prints with --json; null where it prints nothing" }),
                },
            },
            "required": ["exit_code", "exit", "result"],
        });
        if let Some(definitions) = definitions {
            schema["$defs"] = definitions;
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_an_option_of_a_tool() {
        let mut all = arguments::of_tools();
        all.build();
        let find = |command, name: &&str| {
            clap::Command::find_subcommand(command, name).expect("a command of the table")
        };
        let names = |row: &ToolRow| -> Vec<String> {
            let command = row.command.iter().fold(&all, find);
            let name = |one: &clap::Arg| one.get_long().unwrap_or(one.get_id().as_str()).to_owned();
            command.get_arguments().map(name).collect()
        };
        let everywhere: Vec<String> = TOOLS.iter().flat_map(names).collect();
        for row in &TOOLS {
            for name in row.left_out.iter().flat_map(|names| names.iter()) {
                assert!(everywhere.iter().any(|known| known == name), "{}: {name}", row.name);
            }
            for name in row.texts.iter().chain(&row.no_result) {
                assert!(names(row).iter().any(|known| known == name), "{}: {name}", row.name);
            }
        }
    }

    /// No tool has an option whose value is a command, or a file of the caller's choice that is written; the folder of a
    /// record or of a workload has to be new or empty.
    #[test]
    fn no_tool_runs_words_of_a_call_or_writes_where_it_says() {
        for tool in tools(true) {
            for one in tool.parameters() {
                let help = one.schema()["description"].as_str().unwrap_or_default().to_lowercase();
                let is_writing = help.starts_with("write ") && one.name != "values";
                let is_new = help.contains("new or empty") || help.contains("must not exist");
                assert!(!is_writing || is_new, "{}: {}: {help}", tool.name(), one.name);
                let is_command = ["command for", "command that"].iter().any(|it| help.contains(it));
                assert!(!is_command, "{}: {}: {help}", tool.name(), one.name);
            }
        }
    }

    #[test]
    fn without_leave_every_tool_only_reads() {
        let names = |may_run| tools(may_run).iter().map(AssistantTool::name).collect::<Vec<_>>();
        assert_eq!(names(false), ["show", "history", "check"]);
        assert_eq!(names(true), ["show", "history", "check", "compare", "bench", "workload"]);
        assert!(tools(false).iter().all(|tool| tool.row.effect == ToolEffect::Reads));
    }
}
