//! The notes of a history in a workload's scripts, and the variables that go with them.

use script::{CommandKind, HistoryNote, Names, Script, Slot};

use crate::LoadError;

/// The variables that a script makes keys and values of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistorySlots {
    /// The first of [`VALUES`] integers that no other transaction of the load is given.
    pub(crate) value: Slot,
    /// Milliseconds since the start of the run, for keys that are used for a while.
    pub(crate) ms: Slot,
}

/// Values that each transaction may write.
pub(crate) const VALUES: u64 = 16;

impl HistorySlots {
    pub(crate) fn of(names: &mut Names) -> HistorySlots {
        HistorySlots { value: names.intern("history_value"), ms: names.intern("history_ms") }
    }
}

/// The notes of each command of a script.
pub(crate) fn of_script(
    script: &Script,
    names: &mut Names,
) -> Result<Vec<Box<[HistoryNote]>>, LoadError> {
    let wrong = |line: u32, why: &str| LoadError::HistoryNote {
        script: script.name.clone(),
        line,
        why: why.to_owned(),
    };
    if let Some(line) = script.strays.first() {
        return Err(wrong(*line, "a note of a history must stand before an SQL statement"));
    }
    let mut is_pipeline = false;
    let mut notes = Vec::with_capacity(script.commands.len());
    for command in &script.commands {
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
        notes.push(parsed.into());
    }
    Ok(notes)
}
