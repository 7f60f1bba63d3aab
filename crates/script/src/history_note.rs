//! Effect of a statement on a history, as a comment before it states it: pgbench ignores the
//! comment.
//!
//! ```sql
//! -- \history append :key :value
//! INSERT INTO lists VALUES (:key, :value) ON CONFLICT …;
//! ```

use crate::names::{VariableNames, VariableSlot, is_variable_name};

/// Effect of a statement on a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HistoryNote {
    /// It appends an element to a list.
    Append { key: NoteOperand, value: NoteOperand },
    /// The row holds a list.
    List { key: NoteOperand },
    /// It writes a register.
    Write { key: NoteOperand, value: NoteOperand },
    /// The row holds the value of a register.
    Register { key: NoteOperand },
    /// The row holds the balances of all accounts, as a list.
    Accounts {
        /// The sum that transfers do not change.
        total: NoteOperand,
    },
}

/// A number in a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteOperand {
    /// As it is written.
    Integer(i64),
    /// The value of a variable when the statement is sent.
    Variable(VariableSlot),
}

/// Word that begins a note, after the dashes.
const WORD: &str = "\\history";

impl HistoryNote {
    /// The texts of the notes in what stands before a statement, without the word that begins them.
    pub(crate) fn texts(comments: &[u8]) -> Vec<String> {
        let lines = comments.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
        let texts = lines.filter_map(|line| {
            let text = line.trim().strip_prefix("--")?.trim_start().strip_prefix(WORD)?;
            let is_word = text.is_empty() || text.starts_with(char::is_whitespace);
            is_word.then(|| text.trim().to_owned())
        });
        texts.collect()
    }

    /// Reads the text of a note. Names get their slots in `names`.
    pub fn parse(text: &str, names: &mut VariableNames) -> Result<HistoryNote, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut operand = |word: &str| operand(word, names);
        match words[..] {
            ["append", key, value] => {
                Ok(HistoryNote::Append { key: operand(key)?, value: operand(value)? })
            }
            ["list", key] => Ok(HistoryNote::List { key: operand(key)? }),
            ["write", key, value] => {
                Ok(HistoryNote::Write { key: operand(key)?, value: operand(value)? })
            }
            ["register", key] => Ok(HistoryNote::Register { key: operand(key)? }),
            ["accounts", total] => Ok(HistoryNote::Accounts { total: operand(total)? }),
            _ => Err(format!(
                "\"{WORD} {text}\" is no note of a history; write append KEY VALUE, list KEY, write \
                 KEY VALUE, register KEY or accounts TOTAL"
            )),
        }
    }

    /// The variables that it names.
    pub fn reads(&self) -> Vec<VariableSlot> {
        let operands = match *self {
            HistoryNote::Append { key, value } | HistoryNote::Write { key, value } => {
                vec![key, value]
            }
            HistoryNote::List { key } | HistoryNote::Register { key } => vec![key],
            HistoryNote::Accounts { total } => vec![total],
        };
        let variables = operands.into_iter().filter_map(|operand| match operand {
            NoteOperand::Variable(slot) => Some(slot),
            NoteOperand::Integer(_) => None,
        });
        variables.collect()
    }

    /// True if the statement changes what it names.
    pub fn is_write(&self) -> bool {
        !self.is_read()
    }

    /// True if it is about the result of the statement.
    pub fn is_read(&self) -> bool {
        match self {
            HistoryNote::Append { .. } | HistoryNote::Write { .. } => false,
            HistoryNote::List { .. }
            | HistoryNote::Register { .. }
            | HistoryNote::Accounts { .. } => true,
        }
    }
}

fn operand(word: &str, names: &mut VariableNames) -> Result<NoteOperand, String> {
    if let Ok(number) = word.parse() {
        return Ok(NoteOperand::Integer(number));
    }
    match word.strip_prefix(':').filter(|name| is_variable_name(name.as_bytes())) {
        Some(name) => Ok(NoteOperand::Variable(names.intern(name))),
        None => {
            Err(format!("\"{word}\" in a note of a history is neither an integer nor :VARIABLE"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParsedScript, ScriptSyntax};

    #[test]
    fn notes_stand_in_comments_before_their_statement() {
        let text = "-- \\history append :k 5\n--\\history list 7\n-- history of k\nSELECT 1;\n\
                    SELECT 2; -- \\history write :k :v\nSELECT '-- \\history list 1';\n";
        let mut names = VariableNames::default();
        let script = ParsedScript::parse("a.sql", text, ScriptSyntax::Current, &mut names).unwrap();
        let notes: Vec<Vec<&str>> = script
            .commands
            .iter()
            .map(|command| command.notes.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(notes, [vec!["append :k 5", "list 7"], vec![], vec!["write :k :v"]]);
        assert_eq!(script.strays, []);
        let key = NoteOperand::Variable(names.intern("k"));
        let value = NoteOperand::Integer(5);
        assert_eq!(
            HistoryNote::parse(&script.commands[0].notes[0], &mut names),
            Ok(HistoryNote::Append { key, value })
        );
    }

    #[test]
    fn a_note_before_no_statement_is_a_stray() {
        let text = "-- \\history list 7\n\\set a 1\nSELECT 1;\n-- \\history list 8\n";
        let script = ParsedScript::parse(
            "a.sql",
            text,
            ScriptSyntax::Current,
            &mut VariableNames::default(),
        )
        .unwrap();
        assert_eq!(script.strays, [1, 4]);
    }

    #[test]
    fn what_is_no_note_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = HistoryNote::parse(text, &mut VariableNames::default()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("", "is no note");
        check("append 1", "is no note");
        check("list a", "\"a\" in a note");
        check("list 1 2", "is no note");
    }
}
