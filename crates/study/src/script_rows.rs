//! The rows that the scripts of a workload draw from, as the load engine wants them.
//!
//! Two scripts may name one file, which is read once then.

use load::ScriptRows;
use spec::ScriptShare;

/// The rows of these scripts, each once.
pub(crate) fn of(scripts: &[ScriptShare]) -> Vec<ScriptRows> {
    let mut rows: Vec<ScriptRows> = Vec::new();
    for (source, text) in scripts.iter().flat_map(|script| &script.rows) {
        let is_known = rows.iter().any(|known| known.source == *source);
        if !is_known {
            rows.push(ScriptRows::new(source.clone(), &text.text));
        }
    }
    rows
}
