//! The names of files and directories in a record.

use std::path::Path;

use crate::Trial;

/// The first page of a record.
pub const HEADER: &str = "record.json";

/// The directory of the study's copy.
pub(crate) const STUDY: &str = "study";

/// The directory of the trials.
pub(crate) const TRIALS: &str = "trials";

/// The directory of a trial's ledger.
pub(crate) const LEDGER: &str = "ledger";

/// The directory, in that of the ledger, of the states that an exploration has kept.
pub const KEPT_STATES: &str = "states";

pub(crate) const UNFINISHED: &str = ".tmp";

/// True if a directory below `trials` is one that was not finished.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension == &UNFINISHED[1..] || extension == &BEGUN[1..])
}

/// The end of the name of an attempt's directory while it is under way.
pub(crate) const BEGUN: &str = ".begun";

/// The name of the directory of an attempt that was begun and never ended.
pub(crate) fn begun(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.strip_suffix(BEGUN)?.to_owned())
}

/// The name of an attempt's directory: `0001-VARIANT-SCENARIO`, and from the second attempt on
/// `0001-VARIANT-SCENARIO-attempt-2`.
pub(crate) fn trial_directory(trial: &Trial) -> String {
    let name = format!("{:04}-{}-{}", trial.number, trial.variant, trial.scenario);
    match trial.attempt {
        0 | 1 => name,
        attempt => format!("{name}-attempt-{attempt}"),
    }
}
