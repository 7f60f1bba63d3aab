//! One lane's ledger: a file to which every transaction's intent goes before anything of it is
//! sent, and its outcome afterwards.
//!
//! What the sessions note while a lane is awake is written in one piece before the lane sends
//! anything. `write` hands it to the kernel, where it survives the death of this process; only a
//! crash of the whole machine could take it.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use record::ledger::{Entry, SUFFIX, header_line};

use crate::LedgerPlan;

pub(crate) struct LaneLedger {
    file: Arc<File>,
    path: String,
    pending: Vec<u8>,
}

impl LaneLedger {
    /// Creates the file of the lane with this number over all processes.
    pub(crate) fn create(plan: &LedgerPlan, lane: u32) -> Result<Self, String> {
        let path = Path::new(&plan.directory).join(format!("{lane}{SUFFIX}"));
        let shown = path.display().to_string();
        let create = || {
            let mut file = File::create_new(&path)?;
            file.write_all(header_line(plan.seed).as_bytes())?;
            Ok(file)
        };
        match create() {
            Ok(file) => Ok(LaneLedger { file: Arc::new(file), path: shown, pending: Vec::new() }),
            Err(error) => Err(failed("create", &shown, &error)),
        }
    }

    /// Begins one in a file without a name, from which it is read again.
    pub(crate) fn unnamed(plan: &LedgerPlan, file: Arc<File>) -> Result<Self, String> {
        let path = "in a file without a name".to_owned();
        match (&*file).write_all(header_line(plan.seed).as_bytes()) {
            Ok(()) => Ok(LaneLedger { file, path, pending: Vec::new() }),
            Err(error) => Err(failed("write", &path, &error)),
        }
    }

    pub(crate) fn note(&mut self, entry: Entry) {
        entry.write(&mut self.pending);
    }

    /// Writes what was noted. Nothing may be sent when that fails.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = (&*self.file).write_all(&self.pending);
        self.pending.clear();
        written.map_err(|error| failed("write", &self.path, &error))
    }
}

fn failed(verb: &str, path: &str, error: &io::Error) -> String {
    format!("could not {verb} the ledger {path}: {error}")
}

#[cfg(test)]
mod tests {
    use record::{Moment, ledger::What};

    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_with_its_place() {
        let plan = LedgerPlan { directory: "/nowhere".to_owned(), seed: 1 };
        let why = LaneLedger::create(&plan, 3).err().unwrap_or_default();
        assert!(why.starts_with("could not create the ledger /nowhere/3.ledger: No such"), "{why}");

        let file = File::options().write(true).open("/dev/full").unwrap();
        let file = Arc::new(file);
        let mut full = LaneLedger { file, path: "here".to_owned(), pending: Vec::new() };
        assert_eq!(full.write(), Ok(()), "nothing to write");
        full.note(Entry { client: 1, seq: 1, at: Moment(1), what: What::Intended });
        let why = full.write().unwrap_err();
        assert!(why.starts_with("could not write the ledger here: No space left"), "{why}");
    }
}
