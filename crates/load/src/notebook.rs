//! A file in which one lane notes what its clients are about to do and what they have heard.
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

pub(crate) struct Notebook {
    /// The name in messages: a ledger, a history.
    called: &'static str,
    file: Arc<File>,
    path: String,
    pub(crate) pending: Vec<u8>,
    /// Why the last write failed: nothing may follow half a line.
    failed: Option<String>,
}

impl Notebook {
    /// Creates the file, which begins with `header`.
    pub(crate) fn create(called: &'static str, path: &Path, header: &[u8]) -> Result<Self, String> {
        let shown = path.display().to_string();
        let create = || {
            let mut file = File::create_new(path)?;
            file.write_all(header)?;
            Ok(file)
        };
        match create() {
            Ok(file) => Ok(Notebook {
                called,
                file: Arc::new(file),
                path: shown,
                pending: Vec::new(),
                failed: None,
            }),
            Err(error) => Err(failed(called, "create", &shown, &error)),
        }
    }

    /// Begins one in a file without a name, from which it is read again.
    pub(crate) fn unnamed(
        called: &'static str,
        file: Arc<File>,
        header: &[u8],
    ) -> Result<Self, String> {
        let path = "in a file without a name".to_owned();
        match (&*file).write_all(header) {
            Ok(()) => Ok(Notebook { called, file, path, pending: Vec::new(), failed: None }),
            Err(error) => Err(failed(called, "write", &path, &error)),
        }
    }

    /// Writes what was noted. Nothing may be sent when that fails.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.failed.is_none() {
            let written = (&*self.file).write_all(&self.pending);
            self.failed =
                written.err().map(|error| failed(self.called, "write", &self.path, &error));
        }
        self.pending.clear();
        self.failed.clone().map_or(Ok(()), Err)
    }
}

fn failed(called: &str, verb: &str, path: &str, error: &io::Error) -> String {
    format!("could not {verb} the {called} {path}: {error}")
}
