//! A node with a clock of its own, which can be stepped: a fault for checks to find. A library that is loaded
//! before the C library moves what the machine's clock says.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::inner::node::swallow::{PreloadedLibrary, compile};

impl Node {
    /// The library of the node's clock; none where the node has the machine's. The clock goes as the machine's until it
    /// is stepped.
    pub(super) fn clock(&self) -> Result<Option<PreloadedLibrary>, Error> {
        if !self.config.has_own_clock {
            return Ok(None);
        }
        let library = self.program.shared.path().join("clock.so");
        compile(&library, SOURCE)?;
        let file = self.clock_file();
        // The server's user reads it.
        let owner = self.program.owner;
        let made = owner.access(|| fs::write(&file, 0i64.to_ne_bytes()));
        made.map_err(failed("writing", &file))?;
        let variable = ("PGRIG_CLOCK".to_owned(), file.display().to_string());
        Ok(Some(PreloadedLibrary { file: library, variable }))
    }

    /// Moves the clock that its processes see by so many microseconds, from now on.
    pub(crate) fn step_clock(&self, by_us: i64) -> Result<(), Error> {
        let doing = "stepping the clock of";
        self.program.expect_running(doing)?;
        if !self.config.has_own_clock {
            return Err(self.program.state(doing, "has the clock of the machine"));
        }
        let file = self.clock_file();
        // The processes have it in their memory: it is changed in place, and in one piece.
        let step = || {
            let file = fs::OpenOptions::new().read(true).write(true).open(&file)?;
            let mut known = [0; 8];
            file.read_exact_at(&mut known, 0)?;
            file.write_all_at(&(i64::from_ne_bytes(known) + by_us).to_ne_bytes(), 0)
        };
        self.program.owner.access(step).map_err(failed("writing", &file))
    }

    fn clock_file(&self) -> PathBuf {
        self.program.file("clock")
    }
}

const SOURCE: &str = include_str!("clock.c");
