//! pgrig as the tools of an assistant: `pgrig mcp`.
//!
//! Reading order: `offer` says which commands are tools, and which of their options; `parameter` makes the schema of a
//! tool from clap's description of its command; `words` makes a command line from the arguments of a call, and `child`
//! runs it. [`AssistantDesk`] puts them together.

mod child;
mod offer;
mod parameter;
mod words;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use console::ProgramExit;
use mcp::{CallCourse, OfferedTool, ToolAnswer, ToolCall, ToolRefusal, ToolSource};
use serde_json::{Map, Value, json};

use crate::assistant::child::{ChildOutcome, ChildPatience};
use crate::assistant::offer::{AssistantTool, ToolWork};
use crate::assistant::words::CallWords;
use crate::command::compare::RUNS;
use crate::complaint::Complaint;
use crate::exit::MEANINGS;
use crate::studies;

/// The tools of one assistant.
pub(crate) struct AssistantDesk {
    program: PathBuf,
    tools: Vec<AssistantTool>,
    offered: Vec<OfferedTool>,
    instructions: String,
    /// Held while something is measured.
    load: Mutex<()>,
}

/// Bytes of text in an answer: more than a page that anybody reads.
const TEXT_MAX: usize = 32 << 10;

/// Bytes of a result in an answer. A larger one is read from the record, or from a file.
const RESULT_MAX: usize = 4 << 20;

impl AssistantDesk {
    /// The tools that only read; with `may_run`, all.
    pub(crate) fn new(may_run: bool) -> Result<AssistantDesk, Complaint> {
        let tools = offer::tools(may_run);
        let offered = tools.iter().map(AssistantTool::offered).collect();
        let place = std::env::current_dir().map_err(|error| {
            Complaint::new(format!("finding the directory in which pgrig was started: {error}"))
        })?;
        let instructions = offer::instructions(may_run, &place);
        let program = studies::program()?;
        Ok(AssistantDesk { program, tools, offered, instructions, load: Mutex::default() })
    }

    /// Runs a command that prints its result, and once more for people.
    fn read(&self, called: &CallWords, course: &CallCourse) -> std::io::Result<CommandEnd> {
        let run = |words: Vec<String>| {
            child::run(&self.program, &words, course, ChildPatience::FinishesReading)
        };
        let of_program = run(called.words("--json"))?;
        let result = serde_json::from_str(&of_program.out).ok();
        let for_people = match &result {
            Some(_) => run(called.words(""))?,
            None => of_program,
        };
        Ok(CommandEnd::new(for_people, result, usize::MAX))
    }

    /// Runs a command that writes its result into a file.
    fn measure(&self, called: &CallWords, course: &CallCourse) -> std::io::Result<CommandEnd> {
        let file = called.result_file();
        let option = file.as_ref().map(|path| format!("--json={}", path.display()));
        // Some commands of a tool have no result: the tables of `bench --initialize`.
        let words = called.words(&option.unwrap_or_default());
        let outcome = child::run(&self.program, &words, course, ChildPatience::EndsAtOnce)?;
        let text = file.and_then(|path| std::fs::read_to_string(path).ok());
        let result = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(CommandEnd::new(outcome, result, SAID_LINES))
    }
}

/// Lines of narration that an answer keeps of a command that measures: where its record and its report are.
const SAID_LINES: usize = 6;

impl ToolSource for AssistantDesk {
    fn program(&self) -> (&str, &str) {
        ("pgrig", env!("CARGO_PKG_VERSION"))
    }

    fn instructions(&self) -> &str {
        &self.instructions
    }

    fn tools(&self) -> &[OfferedTool] {
        &self.offered
    }

    fn call(&self, call: &ToolCall, course: &CallCourse) -> Result<ToolAnswer, ToolRefusal> {
        let tool = self.tools.iter().find(|tool| tool.name() == call.name);
        let tool = tool.ok_or_else(|| ToolRefusal(format!("there is no tool {}", call.name)))?;
        let called = CallWords::of(tool, &call.arguments, &Path::new(RUNS).join("sql"))?;
        let ended = match tool.work() {
            ToolWork::Reads => self.read(&called, course),
            ToolWork::Writes => self.measure(&called, course),
            ToolWork::Loads => match self.load.try_lock() {
                Ok(_held) => self.measure(&called, course),
                Err(TryLockError::WouldBlock) => return Err(ToolRefusal(BUSY.to_owned())),
                // A call that has panicked has no load any more.
                Err(TryLockError::Poisoned(_held)) => self.measure(&called, course),
            },
        };
        let ended =
            ended.map_err(|error| ToolRefusal(format!("starting pgrig {}: {error}", call.name)))?;
        Ok(ended.answer())
    }
}

const BUSY: &str = "a load is running already, and a second one would be measured with it: wait for its end, or \
                    cancel it";

/// What a command has shown, and how it ended.
struct CommandEnd {
    code: Option<i32>,
    text: String,
    result: Option<Value>,
}

impl CommandEnd {
    /// Keeps the last `said_lines` lines of the narration.
    fn new(outcome: ChildOutcome, result: Option<Value>, said_lines: usize) -> CommandEnd {
        let said: Vec<&str> = outcome.said.lines().filter(|line| !line.trim().is_empty()).collect();
        let said = &said[said.len().saturating_sub(said_lines)..];
        let out = outcome.out.trim_end();
        let text = [out, &said.join("\n")].join("\n").trim().to_owned();
        CommandEnd { code: outcome.code, text, result }
    }

    fn answer(self) -> ToolAnswer {
        let CommandEnd { code, text, result } = self;
        let mut text = shortened(text);
        let meaning = MEANINGS.iter().find(|(exit, _)| Some(i32::from(exit.number())) == code);
        let meaning = meaning.map_or("ended by a signal", |(_, meaning)| meaning);
        let is_done = code == Some(i32::from(ProgramExit::Done.number()));
        let is_failure = !is_done && result.is_none();
        let is_large = |result: &Value| result.to_string().len() > RESULT_MAX;
        let result = result.filter(|result| {
            let is_large = is_large(result);
            if is_large {
                text.push_str(
                    "\n[the result is too large for an answer: read it with pgrig show --json]",
                );
            }
            !is_large
        });
        let content = Map::from_iter([
            ("exit_code".to_owned(), json!(code)),
            ("exit".to_owned(), json!(meaning.replace('`', ""))),
            ("result".to_owned(), json!(result)),
        ]);
        ToolAnswer { text, content, is_failure }
    }
}

/// A text whose end is left out where it is too long.
fn shortened(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        let bytes = text.len();
        let end = (0..=TEXT_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.expect("a text begins at a boundary"));
        text.push_str(&format!("\n[cut off: {bytes} bytes in all]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_how_the_command_ended_and_a_result_is_no_failure() {
        let check = |code: Option<i32>, result: Option<Value>, exit: &str, is_failure: bool| {
            let outcome =
                ChildOutcome { code, out: "out\n".to_owned(), said: "a\n\nb\nc".to_owned() };
            let answer = CommandEnd::new(outcome, result.clone(), 2).answer();
            assert_eq!(answer.text, "out\nb\nc");
            assert_eq!(answer.content["exit"], exit);
            assert_eq!(answer.content["result"], json!(result));
            assert_eq!(answer.is_failure, is_failure, "{code:?}");
        };
        check(Some(0), None, "done", false);
        check(Some(1), None, "could not start", true);
        check(Some(3), Some(json!({})), MEANINGS[3].1, false);
        check(None, None, "ended by a signal", true);
        let long = shortened("ä".repeat(TEXT_MAX));
        assert!(long.len() < TEXT_MAX + 40 && long.ends_with("[cut off: 65536 bytes in all]"));
    }
}
