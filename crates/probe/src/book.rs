//! Samples and marks that a sampler has written down so far.

use record::Sample;

/// More samples than this are not kept: an hour of ten servers and a large machine is far below.
const SAMPLES_MAX: usize = 2_000_000;

/// Samples and notes of a trial, bounded.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) samples: Vec<Sample>,
    pub(crate) notes: Vec<String>,
    pub(crate) late_ticks: u64,
    dropped: u64,
}

impl Book {
    pub(crate) fn add(&mut self, samples: Vec<Sample>) {
        let room = SAMPLES_MAX.saturating_sub(self.samples.len());
        self.dropped += samples.len().saturating_sub(room) as u64;
        self.samples.extend(samples.into_iter().take(room));
    }

    /// The notes, with one on what did not fit.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        if self.dropped > 0 {
            notes.push(format!("the trial has too many samples; not kept: {}", self.dropped));
        }
        notes
    }
}
