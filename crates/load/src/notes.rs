//! The notes of a history in a workload's scripts, and the variables that go with them.

use script::{CommandKind, HistoryNote, ParsedScript, VariableNames, VariableSlot};

use crate::LoadError;
use crate::ledger_statements::{self, LedgerStatement};

/// The variables that a script makes keys and values of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistorySlots {
    /// The first of [`VALUES`] integers that no other transaction of the load is given.
    pub(crate) value: VariableSlot,
    /// Milliseconds since the start of the run, for keys that are used for a while.
    pub(crate) ms: VariableSlot,
}

/// Values that each transaction may write.
pub(crate) const VALUES: u64 = 16;

impl HistorySlots {
    pub(crate) fn of(names: &mut VariableNames) -> HistorySlots {
        HistorySlots { value: names.intern("history_value"), ms: names.intern("history_ms") }
    }
}

/// The notes of each command of a script.
pub(crate) fn of_script(
    script: &ParsedScript,
    names: &mut VariableNames,
) -> Result<Vec<Box<[HistoryNote]>>, LoadError> {
    let wrong = |line: u32, why: &str| LoadError::HistoryNote {
        script: script.name.clone(),
        line,
        why: why.to_owned(),
    };
    if let Some(line) = script.strays.first() {
        return Err(wrong(*line, "a note of a history must stand before an SQL statement"));
    }
    let statements = ledger_statements::of_script(script, None);
    let sets_savepoint = |command: usize| {
        statements[command].iter().any(|one| {
            use LedgerStatement::{Releases, RollsBackTo, Savepoint};
            matches!(one, Savepoint(_) | RollsBackTo(_) | Releases(_))
        })
    };
    let (mut savepoint_in_pipeline, mut has_writes) = (None, false);
    let mut is_pipeline = false;
    let mut notes = Vec::with_capacity(script.commands.len());
    for (at, command) in script.commands.iter().enumerate() {
        match command.kind {
            CommandKind::StartPipeline => is_pipeline = true,
            CommandKind::EndPipeline => is_pipeline = false,
            _ => {}
        }
        let texts = command.notes.iter();
        let parsed: Result<Vec<HistoryNote>, String> =
            texts.map(|text| HistoryNote::parse(text, names)).collect();
        let parsed = parsed.map_err(|why| wrong(command.line, &why))?;
        if !parsed.is_empty() && is_pipeline {
            return Err(wrong(command.line, "a history of statements in a pipeline is not kept"));
        }
        if parsed.iter().filter(|note| note.is_read()).count() > 1 {
            return Err(wrong(command.line, "a statement reads one thing: its row is one value"));
        }
        let writes = parsed.iter().any(HistoryNote::is_write);
        has_writes |= writes;
        if writes && sets_savepoint(at) {
            let why = "a statement with a note and one with SAVEPOINT, RELEASE or ROLLBACK TO are joined by \\;: \
                       write two commands";
            return Err(wrong(command.line, why));
        }
        if let (true, CommandKind::Sql { template, .. }) = (writes, &command.kind)
            && ledger_statements::hides_rows(template)
        {
            let why = "the number of rows that it returns does not say whether it has changed one: make INSERT, \
                       UPDATE, DELETE or MERGE the statement behind WITH";
            return Err(wrong(command.line, why));
        }
        if is_pipeline && sets_savepoint(at) {
            savepoint_in_pipeline = Some(command.line);
        }
        notes.push(parsed.into());
    }
    if let (Some(line), true) = (savepoint_in_pipeline, has_writes) {
        return Err(wrong(
            line,
            "a savepoint in a pipeline: its script has notes of writes, which it may take back",
        ));
    }
    Ok(notes)
}
