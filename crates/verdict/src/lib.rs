//! From a study and its record to verdicts, and from two records to differences.
//!
//! Reading order: [`judge`] answers every claim of a study, [`judge_record`] those of a record; [`ClaimMeasurement`] is what it rests on, and
//! `doubt` what may stand against it; [`diff()`] compares two records.
//!
//! Limits: nothing is read from disk, drawn or printed here. Everything is a function of the study
//! and its trials, so that a report made years later gives the same verdicts.

mod claim_verdict;
mod compared;
mod host_gaps;
mod judge;

mod against;
mod attempts;
mod every;
mod failed_check;
mod gaps;
mod left_out;
mod paired;
mod protocol;
mod truth;
mod value;

mod control;
mod delay;
mod doubt;
mod family;
mod rounds;

mod answer;
mod explored;
mod harm;
mod noise;
mod rate;
mod seen;
mod table;
mod unseen;

mod conditions;
mod diff;

mod name;

pub use attempts::{AttemptUse, uses};
pub use claim_verdict::{ClaimFigures, ClaimMeasurement, ClaimVerdict, Verdict};
pub use compared::judge_record;
pub use conditions::RunCondition;
pub use diff::{DiffSide, DifferenceMeaning, MetricDifference, RecordDiff, diff};
pub use explored::{ExploredStates, explored};
pub use harm::{HarmCount, HarmKind, harms};
pub use judge::{DiscardedAttempt, StudyVerdicts, judge, judge_claim};
pub use noise::{MetricNoise, NoiseSource};
pub use rate::{MissedRate, missed_rates};
pub use rounds::{RoundValues, value_of};
pub use seen::{ClientSight, client_sight};
pub use table::{FilledTable, ListedTrial, TableCell, tables};
pub use unseen::{ASSUMED, ProofLimit, UNSEEN};
