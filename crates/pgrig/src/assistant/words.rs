//! The arguments of a call → the words of a command line.
//!
//! A value is always one word, behind `--NAME=` or behind `--`: no value can become an option, and no shell reads any.
//! A text becomes a file below `runs/sql` whose name comes from its content: the record of a call names it, the same
//! proposal has the same name, and the command of the record can be typed again.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use lab::Scratch;
use mcp::ToolRefusal;
use script::{CommandKind, ParsedScript, ScriptSyntax, VariableNames};
use serde_json::{Map, Value};
use server::{SplitConninfo, shown_word};

use crate::assistant::offer::AssistantTool;
use crate::assistant::parameter::{ParameterPlace, ParameterValues, ToolParameter};

/// The words of a call, and the files that they name.
pub(crate) struct CallWords {
    command: &'static [&'static str],
    options: Vec<String>,
    operands: Vec<String>,
    /// The folder of the result, where the command writes one; it goes with this value.
    result: Option<Scratch>,
}

/// Bytes of a value. Texts have the room of a message.
const VALUE_MAX: usize = 16 << 10;

impl CallWords {
    /// The words of a call, whose texts are written into the folder `texts`.
    pub(crate) fn of(
        tool: &AssistantTool,
        arguments: &Map<String, Value>,
        texts: &Path,
    ) -> Result<CallWords, ToolRefusal> {
        let mut called = CallWords {
            command: tool.command(),
            options: Vec::new(),
            operands: Vec::new(),
            result: None,
        };
        for name in arguments.keys() {
            if !tool.parameters().iter().any(|one| one.name == *name) {
                let known: Vec<&str> =
                    tool.parameters().iter().map(|one| one.name.as_str()).collect();
                let known = known.join(", ");
                return refused(format!(
                    "{} has no argument {name:.100}; it has {known}",
                    tool.name()
                ));
            }
        }
        let given =
            tool.parameters().iter().filter_map(|one| Some((one, arguments.get(&one.name)?)));
        let given: Vec<(&ToolParameter, &Value)> = given.collect();
        for (parameter, value) in &given {
            called.add(parameter, value, texts)?;
        }
        let options = given.iter().map(|(one, _)| one.name.as_str());
        if tool.has_result_file(options) {
            let made = Scratch::make().map_err(|error| ToolRefusal(error.to_string()))?;
            called.result = Some(made);
        }
        Ok(called)
    }

    /// The command line, with one word more among the options where it is not empty.
    pub(crate) fn words(&self, more: &str) -> Vec<String> {
        let command = self.command.iter().map(ToString::to_string);
        let options = self.options.iter().cloned();
        let more = Some(more.to_owned()).filter(|more| !more.is_empty());
        let mut words: Vec<String> = command.chain(options).chain(more).collect();
        if !self.operands.is_empty() {
            words.push("--".to_owned());
            words.extend(self.operands.iter().cloned());
        }
        words
    }

    /// The file for the result, where the command writes one.
    pub(crate) fn result_file(&self) -> Option<PathBuf> {
        Some(self.result.as_ref()?.path().join("result.json"))
    }

    fn add(
        &mut self,
        parameter: &ToolParameter,
        value: &Value,
        texts: &Path,
    ) -> Result<(), ToolRefusal> {
        let name = &parameter.name;
        let values = match (parameter.takes, value) {
            (_, Value::Null) | (ParameterValues::Switch, Value::Bool(false)) => return Ok(()),
            (ParameterValues::OneOrTrue, Value::Bool(false)) => return Ok(()),
            (ParameterValues::Switch | ParameterValues::OneOrTrue, Value::Bool(true)) => {
                if let ParameterPlace::Option(option) = &parameter.place {
                    self.options.push(format!("--{option}"));
                }
                return Ok(());
            }
            (ParameterValues::Switch, _) => return refused(format!("{name} is true or false")),
            (ParameterValues::Many, Value::Array(values)) => values.iter().collect(),
            (_, value) => vec![value],
        };
        for value in values {
            let text = text_of(name, value)?;
            match &parameter.place {
                ParameterPlace::TextOf(option) => {
                    let file = write(texts, option, &text)?;
                    self.options.push(format!("--{option}={}", file.display()));
                }
                ParameterPlace::Option(option) => {
                    check_value(name, &text)?;
                    self.options.push(format!("--{option}={text}"));
                }
                ParameterPlace::Operand => {
                    check_value(name, &text)?;
                    self.operands.push(text);
                }
            }
        }
        Ok(())
    }
}

/// Writes a text of a call into a file, unless it is there.
fn write(texts: &Path, option: &str, text: &str) -> Result<PathBuf, ToolRefusal> {
    if option == "file" {
        check_script(text)?;
    }
    let failed = |error: std::io::Error| {
        ToolRefusal(format!("writing a text into a file below {}: {error}", texts.display()))
    };
    std::fs::create_dir_all(texts).map_err(failed)?;
    let path = texts.join(format!("{option}-{:016x}.sql", hash_of(text)));
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    match file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match std::fs::read_to_string(&path).map_err(failed)? == text {
                true => Ok(path),
                false => refused(format!("{} has another text: remove it", path.display())),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// FNV-1a (Fowler, Noll, Vo) of 64 bits. Who makes two texts with one hash is told that the file has another text.
fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn refused<T>(why: String) -> Result<T, ToolRefusal> {
    Err(ToolRefusal(why))
}

fn text_of(name: &str, value: &Value) -> Result<String, ToolRefusal> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => {
            return refused(format!(
                "{name} is a string or a number, or an array of them where it is repeated"
            ));
        }
    };
    match text.contains('\0') {
        true => refused(format!("{name} has a zero byte, which no command line has")),
        false => Ok(text),
    }
}

/// Refuses a value that is too long, and one that may hold a password: other users see command lines.
fn check_value(name: &str, text: &str) -> Result<(), ToolRefusal> {
    if text.len() > VALUE_MAX {
        return refused(format!("{name} has more than {VALUE_MAX} bytes"));
    }
    let is_plain_uri = || {
        let split = SplitConninfo::of(text);
        let has_none =
            |split: SplitConninfo| split.password.is_none() && split.key_password.is_none();
        !text.contains('?') && split.is_ok_and(has_none)
    };
    if shown_word(text) != text && !is_plain_uri() {
        return refused(format!(
            "{name} may hold a password, and a call has none: write host=… user=… dbname=…, and give PGPASSWORD or \
             a password file to the program that runs pgrig mcp"
        ));
    }
    Ok(())
}

/// Refuses a script that runs commands: it would run them as this user, root included.
fn check_script(text: &str) -> Result<(), ToolRefusal> {
    let mut names = VariableNames::default();
    let script = ParsedScript::parse("file_text", text, ScriptSyntax::Current, &mut names);
    let script = script.map_err(|error| ToolRefusal(error.to_string()))?;
    let runs =
        |kind: &CommandKind| matches!(kind, CommandKind::Shell(_) | CommandKind::SetShell { .. });
    match script.commands.iter().any(|command| runs(&command.kind)) {
        true => refused(
            "file_text runs a command (\\shell or \\setshell), which only a file of the user's may"
                .to_owned(),
        ),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::assistant::offer;

    fn words_of(tool: &str, arguments: &Value) -> Result<Vec<String>, String> {
        let tools = offer::tools(true);
        let tool = tools.iter().find(|one| one.name() == tool).expect("a tool");
        let arguments = arguments.as_object().expect("an object");
        let texts = tempfile::tempdir().expect("a folder");
        let called = CallWords::of(tool, arguments, texts.path()).map_err(|refusal| refusal.0)?;
        Ok(called.words(""))
    }

    #[test]
    fn every_value_is_one_word_that_is_no_option() {
        let check = |tool: &str, arguments: Value, expected: &[&str]| {
            assert_eq!(words_of(tool, &arguments).expect("words"), expected, "{arguments}");
        };
        check("show", json!({ "directory": "--json" }), &["show", "--", "--json"]);
        check("check", json!({}), &["check"]);
        check(
            "check",
            json!({ "study": "-x", "set": ["a=1", "--gate"], "profile": "smoke; rm -rf /" }),
            &["check", "--profile=smoke; rm -rf /", "--set=a=1", "--set=--gate", "--", "-x"],
        );
        check(
            "compare",
            json!({ "client": 4, "select_only": true, "seed": null, "self": false, "tail": "b",
                    "clients": [1, 8], "b_set": ["jit=off"], "max_time": "--serve" }),
            &[
                "compare",
                "--b-set=jit=off",
                "--clients=1",
                "--clients=8",
                "--max-time=--serve",
                "--tail=b",
                "--client=4",
                "--select-only",
            ],
        );
        check("compare", json!({ "tail": true }), &["compare", "--tail"]);
        check("history", json!({ "file": "$(id)" }), &["history", "show", "--file=$(id)"]);
        check(
            "bench",
            json!({ "dbname": "host=a", "time": 5, "initialize": true }),
            &["bench", "--initialize", "--time=5", "--", "host=a"],
        );
        check(
            "compare",
            json!({ "a_conninfo": "postgres://u@h/d" }),
            &["compare", "--a-conninfo=postgres://u@h/d"],
        );
    }

    #[test]
    fn what_cannot_be_a_value_is_refused_with_a_reason() {
        let check = |tool: &str, arguments: Value, expected: &str| {
            let why = words_of(tool, &arguments).expect_err("refused");
            assert!(why.contains(expected), "{arguments}: {why}");
            assert!(!why.contains("s3cret"), "{why}");
        };
        check("show", json!({ "dir": "x" }), "has no argument dir; it has directory");
        check("show", json!({ "directory": { "a": 1 } }), "a string or a number");
        check("show", json!({ "directory": "a\u{0}b" }), "zero byte");
        check("show", json!({ "directory": "x".repeat(VALUE_MAX + 1) }), "more than");
        check("compare", json!({ "select_only": "yes" }), "true or false");
        check("compare", json!({ "build": "make" }), "has no argument build");
        check("compare", json!({ "json": "/etc/passwd" }), "has no argument json");
        check("compare", json!({ "a_conninfo": "host=a password=s3cret" }), "may hold a password");
        check("compare", json!({ "a_conninfo": "postgres://u:s3cret@h/d" }), "may hold a password");
        check(
            "bench",
            json!({ "dbname": "postgres://h/d?password=s3cret" }),
            "may hold a password",
        );
        check("compare", json!({ "file_text": "\\ shell id" }), "runs a command");
        check(
            "compare",
            json!({ "file_text": ["SELECT 1;\n\\setshell x id\n"] }),
            "runs a command",
        );
        check("compare", json!({ "file_text": "\\nonsense" }), "nonsense");
    }

    #[test]
    fn a_text_is_a_file_that_the_same_text_finds_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let tools = offer::tools(true);
        let tool = tools.iter().find(|one| one.name() == "compare").expect("a tool");
        let arguments = json!({ "b_sql_text": "CREATE INDEX ON t (a);", "file_text": ["SELECT 1;", "SELECT 2;"] });
        let of = |arguments: &Value| {
            CallWords::of(tool, arguments.as_object().expect("an object"), folder.path())
        };
        let called = of(&arguments).expect("words");
        let words = called.words("--json=x");
        let paths: Vec<&str> = words
            .iter()
            .filter_map(|word| word.strip_prefix("--b-sql=").or(word.strip_prefix("--file=")))
            .collect();
        let text = |path: &&str| std::fs::read_to_string(path).expect("the file");
        let texts: Vec<String> = paths.iter().map(text).collect();
        assert_eq!(texts, ["CREATE INDEX ON t (a);", "SELECT 1;", "SELECT 2;"], "{words:?}");
        assert_eq!(of(&arguments).expect("words").words("--json=x"), words);
        std::fs::write(paths[0], "DROP TABLE t;").expect("written");
        let why = of(&arguments).err().expect("refused").0;
        assert!(why.contains("has another text"), "{why}");
        let place = called.result_file().expect("a file for the result");
        let place = place.parent().expect("its folder").to_owned();
        assert!(place.is_dir());
        drop(called);
        assert!(!place.exists());
    }
}
