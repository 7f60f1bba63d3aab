//! One lane's history: what its clients wrote and read, in a file of its own.

use std::{fs::File, path::Path, sync::Arc};

use history::file::{Recorder, SUFFIX};

use crate::{HistoryPlan, notebook::Notebook};

pub(crate) struct LaneHistory {
    notebook: Notebook,
    recorder: Recorder,
    /// For lists that are read.
    pub(crate) elements: Vec<i64>,
}

impl LaneHistory {
    /// Creates the file of the lane with this number over all processes.
    pub(crate) fn create(plan: &HistoryPlan, lane: u32) -> Result<Self, String> {
        let path = Path::new(&plan.directory).join(format!("{lane}{SUFFIX}"));
        Ok(LaneHistory::of(Notebook::create(CALLED, &path, &plan.header())?))
    }

    /// Begins one in a file without a name, from which it is read again.
    pub(crate) fn unnamed(plan: &HistoryPlan, file: Arc<File>) -> Result<Self, String> {
        Ok(LaneHistory::of(Notebook::unnamed(CALLED, file, &plan.header())?))
    }

    fn of(notebook: Notebook) -> LaneHistory {
        LaneHistory { notebook, recorder: Recorder::default(), elements: Vec::new() }
    }

    /// Notes something.
    pub(crate) fn note(&mut self, note: impl FnOnce(&mut Recorder, &mut Vec<u8>)) {
        note(&mut self.recorder, &mut self.notebook.pending);
    }

    /// Notes something that holds the elements.
    pub(crate) fn note_elements(&mut self, note: impl FnOnce(&mut Recorder, &mut Vec<u8>, &[i64])) {
        note(&mut self.recorder, &mut self.notebook.pending, &self.elements);
    }

    /// Writes what was noted. Nothing may be sent when that fails.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        self.notebook.write()
    }
}

/// The file in messages.
const CALLED: &str = "history";
