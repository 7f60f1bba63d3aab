//! One lane's ledger: a file to which every transaction's intent goes before anything of it is
//! sent, and its outcome afterwards.

use std::{fs::File, path::Path, sync::Arc};

use record::ledger::{LedgerEntry, SUFFIX, header_line};

use crate::{LedgerPlan, notebook::Notebook};

pub(crate) struct LaneLedger {
    notebook: Notebook,
}

impl LaneLedger {
    /// Creates the file of the lane with this number over all processes.
    pub(crate) fn create(plan: &LedgerPlan, lane: u32) -> Result<Self, String> {
        let path = Path::new(&plan.directory).join(format!("{lane}{SUFFIX}"));
        let header = header_line(plan.seed);
        Ok(LaneLedger { notebook: Notebook::create(CALLED, &path, header.as_bytes())? })
    }

    /// Begins one in a file without a name, from which it is read again.
    pub(crate) fn unnamed(plan: &LedgerPlan, file: Arc<File>) -> Result<Self, String> {
        let header = header_line(plan.seed);
        Ok(LaneLedger { notebook: Notebook::unnamed(CALLED, file, header.as_bytes())? })
    }

    pub(crate) fn note(&mut self, entry: LedgerEntry) {
        entry.write(&mut self.notebook.pending);
    }

    /// Writes what was noted. Nothing may be sent when that fails.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        self.notebook.write()
    }
}

/// The settings of the sessions of a workload that keeps a ledger: those that the study gives, and a level of
/// messages at which the server says that a commit no longer waits for its standby. A role, a database or a
/// server may have another default. Only a server takes them: a pooler refuses a setting that it does not know.
pub fn ledger_session(given: &[(String, String)]) -> Vec<(String, String)> {
    const LEVEL: &str = "client_min_messages";
    const HIDES_WARNINGS: [&str; 3] = ["error", "fatal", "panic"];
    let is_level = |name: &str| name.eq_ignore_ascii_case(LEVEL);
    let hides = |value: &str| HIDES_WARNINGS.contains(&value.to_ascii_lowercase().as_str());
    let mut session: Vec<(String, String)> =
        given.iter().filter(|(name, value)| !(is_level(name) && hides(value))).cloned().collect();
    if !session.iter().any(|(name, _)| is_level(name)) {
        let own = if session.len() < given.len() { "warning" } else { "notice" };
        session.push((LEVEL.to_owned(), own.to_owned()));
    }
    session
}

/// The file in messages.
const CALLED: &str = "ledger";

#[cfg(test)]
mod tests {
    use record::{Moment, ledger::LedgerKnowledge};

    use super::*;

    #[test]
    fn a_ledger_hears_warnings() {
        let check = |given: &[(&str, &str)], expected: &[(&str, &str)]| {
            let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
                pairs
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect()
            };
            assert_eq!(ledger_session(&owned(given)), owned(expected));
        };
        let other = ("work_mem", "1MB");
        check(&[other], &[other, ("client_min_messages", "notice")]);
        check(
            &[("client_min_messages", "ERROR"), other],
            &[other, ("client_min_messages", "warning")],
        );
        check(&[("Client_Min_Messages", "log")], &[("Client_Min_Messages", "log")]);
    }

    #[test]
    fn what_cannot_be_written_is_said_with_its_place() {
        let plan = LedgerPlan { directory: "/nowhere".to_owned(), seed: 1 };
        let why = LaneLedger::create(&plan, 3).err().unwrap_or_default();
        assert!(why.starts_with("could not create the ledger /nowhere/3.ledger: No such"), "{why}");

        let full = || Arc::new(File::options().write(true).open("/dev/full").unwrap());
        let why = LaneLedger::unnamed(&plan, full()).err().unwrap_or_default();
        let expected = "could not write the ledger in a file without a name: No space left";
        assert!(why.starts_with(expected), "{why}");
        let mut full = LaneLedger { notebook: Notebook::unnamed(CALLED, full(), b"").unwrap() };
        assert_eq!(full.write(), Ok(()), "nothing to write");
        full.note(LedgerEntry {
            client: 1,
            seq: 1,
            at: Moment(1),
            what: LedgerKnowledge::Intended,
        });
        assert!(full.write().unwrap_err().starts_with(expected));
    }
}
