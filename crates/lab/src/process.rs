//! Any other program of a lab, with the verbs of [`Part`](crate::Part).

use std::path::Path;

use crate::answer::Listing;
use crate::error::Error;
use crate::files::failed;
use crate::part::{Part, is_a_part};
use crate::verb::Verb;

/// A program with a directory and a log of its own. It is killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    pub(crate) part: Part,
}

is_a_part!(Process);

impl Process {
    /// The wall clock of its host, in microseconds since 1970; none on this machine.
    pub fn wall_clock_us(&self) -> Result<Option<i64>, Error> {
        self.host().map(|_| self.object.lab.ask(0, Verb::WallClock)).transpose()
    }

    /// Copies the files directly in `from`, a directory of its lab, to `to` on this machine.
    pub fn fetch(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let files: Listing = self.object.lab.ask(0, Verb::Read(from.to_owned()))?;
        std::fs::create_dir_all(to).map_err(failed("making", to))?;
        // A state and its books are a handful of files.
        if files.len() > FILES_MAX {
            let why = format!("the host has more than {FILES_MAX} files there");
            return Err(failed("copying", from)(std::io::Error::other(why)));
        }
        for (name, bytes) in files {
            let path = to.join(&name);
            if !is_file_name(&name) {
                return Err(failed("writing", &path)(std::io::ErrorKind::InvalidFilename.into()));
            }
            std::fs::write(&path, bytes).map_err(failed("writing", &path))?;
        }
        Ok(())
    }
}

/// Files that a host may give at once.
const FILES_MAX: usize = 100;

/// True if a name that a host gives stays in the directory that it is joined to.
fn is_file_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|own| own == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_host_stay_in_their_directory() {
        let check = |name: &str, expected: bool| assert_eq!(is_file_name(name), expected, "{name}");
        check("state.json", true);
        check(".hidden", true);
        for name in ["", ".", "..", "/etc/passwd", "../x", "a/b", "a/", "a/.."] {
            check(name, false);
        }
    }
}
