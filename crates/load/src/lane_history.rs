//! One lane's history: what its clients wrote and read, in a file of its own.

use std::{fs::File, path::Path, sync::Arc};

use history::file::{HistoryWriter, SUFFIX};

use crate::{HistoryPlan, notebook::Notebook};

pub(crate) struct LaneHistory {
    notebook: Notebook,
    recorder: HistoryWriter,
    /// True if the notes are about a write that is about to be sent.
    is_urgent: bool,
    /// For lists that are read.
    pub(crate) elements: Vec<i64>,
    /// The bound of moments that was noted last, in nanoseconds.
    bound_ns: u64,
}

impl LaneHistory {
    /// Creates the file of the lane with this number of so many lanes of all processes.
    pub(crate) fn create(plan: &HistoryPlan, lane: u32, lanes: usize) -> Result<Self, String> {
        let path = Path::new(&plan.directory).join(format!("{lane}{SUFFIX}"));
        Ok(LaneHistory::of(Notebook::create(CALLED, &path, &plan.header(lanes))?))
    }

    /// Begins one in a file without a name, from which it is read again.
    pub(crate) fn unnamed(
        plan: &HistoryPlan,
        file: Arc<File>,
        lanes: usize,
    ) -> Result<Self, String> {
        Ok(LaneHistory::of(Notebook::unnamed(CALLED, file, &plan.header(lanes))?))
    }

    fn of(notebook: Notebook) -> LaneHistory {
        LaneHistory {
            notebook,
            recorder: HistoryWriter::default(),
            is_urgent: false,
            elements: Vec::new(),
            bound_ns: 0,
        }
    }

    /// Notes that the moments which follow are within so many nanoseconds of the run's, where what was noted last
    /// says less, or much more.
    pub(crate) fn moments_within(&mut self, bound_ns: u64) {
        if bound_ns <= self.bound_ns && bound_ns >= self.bound_ns / 2 {
            return;
        }
        // A bound grows with the time since the clock was looked at; not each step is noted.
        let told = bound_ns.saturating_add(bound_ns / 8).min(BOUND_UNKNOWN_NS);
        self.bound_ns = told;
        self.note(|recorder, out| recorder.moments_within(out, told));
    }

    /// Notes a write that is about to be sent.
    pub(crate) fn note_write(&mut self, note: impl FnOnce(&mut HistoryWriter, &mut Vec<u8>)) {
        self.is_urgent = true;
        self.note(note);
    }

    pub(crate) fn note(&mut self, note: impl FnOnce(&mut HistoryWriter, &mut Vec<u8>)) {
        note(&mut self.recorder, &mut self.notebook.pending);
    }

    /// Notes something that holds the elements.
    pub(crate) fn note_elements(
        &mut self,
        note: impl FnOnce(&mut HistoryWriter, &mut Vec<u8>, &[i64]),
    ) {
        note(&mut self.recorder, &mut self.notebook.pending, &self.elements);
    }

    /// Writes what must be in the file before anything is sent: writes, and what was noted before
    /// them. What is lost of the rest with this process is unknown then, which is true. Nothing may be
    /// sent when that fails.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        match self.is_urgent || self.notebook.pending.len() >= PENDING_MAX {
            true => self.write_all(),
            false => Ok(()),
        }
    }

    /// Writes everything that was noted, and that nothing follows.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.note(HistoryWriter::finishes);
        self.write_all()
    }

    /// Writes everything that was noted.
    pub(crate) fn write_all(&mut self) -> Result<(), String> {
        self.is_urgent = false;
        self.notebook.write()
    }
}

/// A bound that says nothing, as a file can hold it.
const BOUND_UNKNOWN_NS: u64 = i64::MAX as u64;

/// More than this is written even if nothing waits for it.
const PENDING_MAX: usize = 1 << 16;

/// The file in messages.
const CALLED: &str = "history";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_moments_is_noted_where_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().display().to_string();
        let plan = HistoryPlan { directory, groups: Vec::new() };
        let mut history = LaneHistory::create(&plan, 0, 1).unwrap();
        for bound_ns in [0, 0, u64::MAX, 800_000, 850_000, 900_000, 901_000, 500_000, 400_000, 0] {
            history.moments_within(bound_ns);
        }
        history.write_all().unwrap();
        let text = std::fs::read_to_string(folder.path().join("0.history")).unwrap();
        let noted: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("e ")).collect();
        assert_eq!(noted, ["0", "9223372036854775807", "900000", "1013625", "562500", "0"]);
    }
}
