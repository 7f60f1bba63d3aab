//! Fate of the servers that lost their power, as figures.

use check::CheckOutcome;
use record::{Note, NoteKind};
use site::{NotStarted, Recovered};
use spec::{Metric, metrics};

/// Fate of servers that lost their power.
pub(crate) struct PowerlessServers {
    pub(crate) recovered: Vec<Recovered>,
    /// Why a check could not read what it looked at.
    pub(crate) unreadable: Option<String>,
}

impl PowerlessServers {
    /// Figures and notes, given what the checks found. The scope of a figure is a server, and empty
    /// where only one lost its power.
    pub(crate) fn outcome(&self, checked: &CheckOutcome) -> CheckOutcome {
        // A check that was not made has found nothing.
        let found = |metric: &Metric| checked.value(metric, "").unwrap_or(0.0);
        let is_corrupt = self.unreadable.is_some()
            || found(&metrics::AMCHECK_CORRUPTIONS) > 0.0
            || found(&metrics::CHECKSUM_FAILURES) > 0.0;
        let lost = found(&metrics::LEDGER_LOST);
        let has_lost = found(&metrics::LEDGER_ANOMALIES) > 0.0;
        let mut outcome = CheckOutcome::default();
        for one in &self.recovered {
            let scopes = match self.recovered[..] {
                [_] => vec![one.taken.node.clone(), String::new()],
                _ => vec![one.taken.node.clone()],
            };
            let cut = &one.taken.cut;
            let survived = one.started.is_ok() && !is_corrupt && !has_lost;
            for scope in scopes {
                let mut set = |metric, value: f64| outcome.set(metric, &scope, value);
                let truth = |is: bool| f64::from(u8::from(is));
                set(&metrics::CUT_SURVIVED, truth(survived));
                set(&metrics::CUT_STARTED, truth(one.started.is_ok()));
                let misses = |why: &NotStarted| why.is_checkpoint_missing;
                set(
                    &metrics::CUT_CHECKPOINT_MISSING,
                    truth(one.started.as_ref().is_err_and(misses)),
                );
                set(&metrics::CUT_BYTES_UNFLUSHED, cut.unflushed_bytes as f64);
                set(&metrics::CUT_BYTES_LOST, cut.dropped_bytes as f64);
                set(&metrics::CUT_BYTES_KEPT, cut.kept_bytes as f64);
                set(&metrics::CUT_BLOCKS_TORN, cut.torn_blocks as f64);
                if let Some(is) = one.taken.in_checkpoint {
                    set(&metrics::CUT_IN_CHECKPOINT, truth(is));
                }
                if let Some(has) = one.taken.has_panicked {
                    set(&metrics::CUT_PANICKED, truth(has));
                }
                match &one.started {
                    Ok(took) if !took.is_zero() => set(&metrics::RECOVERY_S, took.as_secs_f64()),
                    _ => {}
                }
                if let Some(rescued) = one.rescued {
                    set(&metrics::RESETWAL_STARTED, truth(rescued));
                    if rescued && self.unreadable.is_none() {
                        set(&metrics::RESETWAL_LOST, lost);
                    }
                }
                if one.runs() {
                    set(&metrics::CORRUPT, truth(is_corrupt));
                }
            }
        }
        let unreadable = self.unreadable.iter().map(|why| format!("after the power cut: {why}"));
        let said = self.recovered.iter().filter_map(Recovered::note).chain(unreadable);
        outcome.notes.extend(said.map(|text| Note::new(NoteKind::Check, text)));
        outcome
    }
}
