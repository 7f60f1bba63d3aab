//! The name of a directory of built data, which stands for everything that they were made from.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;

use lab::Installation;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::source::ImportSource;

/// A digest of everything that data were made from.
#[derive(Clone)]
pub struct BuildKey(Sha256);

/// Data that another version of this program has built are not the same.
const FORMAT: &str = concat!("pgrig ", env!("CARGO_PKG_VERSION"), " data 1");

impl BuildKey {
    /// Data of a server of this installation. One that was built anew has another key.
    pub fn new(installation: &Installation) -> BuildKey {
        let program = installation.program("postgres");
        let mut key = BuildKey(Sha256::new());
        key.add(FORMAT);
        key.add(&installation.version().to_string());
        key.add(&program.display().to_string());
        if let Ok(file) = program.metadata() {
            key.add(&format!("{} {} {}", file.len(), file.mtime(), file.mtime_nsec()));
        }
        key
    }

    /// Adds a word: what was made, or how.
    pub fn add(&mut self, word: &str) {
        self.0.update((word.len() as u64).to_le_bytes());
        self.0.update(word.as_bytes());
    }

    /// Adds what a file of data holds, whatever its name is.
    pub fn add_source(&mut self, source: &ImportSource) -> Result<(), Error> {
        source.digest(&mut self.0)
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        let digest = self.0.clone().finalize();
        digest.iter().take(16).fold(String::new(), |mut name, byte| {
            // Writing to a String cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        })
    }
}
