//! A temporary directory beside a lab, for files of the rig that no server sees.

use std::path::Path;

use crate::clean::Marker;
use crate::directory::{Directory, make_temporary};
use crate::error::Error;
use crate::lab_config::AtEnd;

/// A directory that is removed when this is dropped. It is marked as a lab's directory is, so that
/// [`clean`](crate::clean()) removes one that a crash has left.
#[derive(Debug)]
pub struct Scratch(Directory);

impl Scratch {
    /// Makes one below the system's directory for temporary files.
    pub fn make() -> Result<Scratch, Error> {
        let path = make_temporary()?;
        let mut directory = Directory { path, at_end: AtEnd::Remove, marker: None };
        directory.marker = Some(Marker::make(&directory.path)?);
        Ok(Scratch(directory))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_left_is_known_to_clean_and_one_in_use_is_let_be() {
        let mut scratch = Scratch::make().unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(path.join("samples"), "x").unwrap();
        assert_eq!(crate::clean(&path).unwrap().alive, std::slice::from_ref(&path));
        // As the death of the process leaves it.
        scratch.0.at_end = AtEnd::Keep;
        drop(scratch);
        assert!(path.exists());
        assert_eq!(crate::clean(&path).unwrap().removed, std::slice::from_ref(&path));
        assert!(!path.exists());
        let path = Scratch::make().unwrap().path().to_owned();
        assert!(!path.exists(), "it is removed at its end");
    }
}
