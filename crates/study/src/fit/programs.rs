//! The PostgreSQL installations of a study on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lab::Installation;
use spec::{Study, TopologyNode};

/// The PostgreSQL of a run, and others that nodes of the study name.
#[derive(Clone, Debug)]
pub struct StudyPrograms {
    /// That of nodes that name none.
    pub(crate) of_run: Installation,
    /// The others, by the folder that nodes name.
    pub(crate) by_bin: BTreeMap<PathBuf, Installation>,
}

impl StudyPrograms {
    /// Finds the programs that nodes of a study name, beside those of the run.
    ///
    /// # Errors
    /// That of [`lab::find::find`], for a folder without PostgreSQL.
    pub fn find(of_run: Installation, study: &Study) -> Result<StudyPrograms, lab::Error> {
        let nodes = study.points.iter().flat_map(|point| &point.topology.nodes);
        let named: BTreeSet<&PathBuf> = nodes.filter_map(|node| node.bin.as_ref()).collect();
        let found = named.into_iter().map(|bin| Ok((bin.clone(), lab::find::find(Some(bin))?)));
        Ok(StudyPrograms { by_bin: found.collect::<Result<_, lab::Error>>()?, of_run })
    }

    /// Each of them, once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Installation> {
        let others: BTreeMap<_, _> = self.by_bin.values().map(|one| (one.bin(), one)).collect();
        let others = others.into_values().filter(|one| **one != self.of_run);
        std::iter::once(&self.of_run).chain(others)
    }

    /// The PostgreSQL of a node; none where the node names a folder that was not looked for.
    pub(crate) fn of(&self, node: &TopologyNode) -> Option<&Installation> {
        node.bin.as_ref().map_or(Some(&self.of_run), |bin| self.by_bin.get(bin))
    }
}

impl From<Installation> for StudyPrograms {
    fn from(of_run: Installation) -> StudyPrograms {
        StudyPrograms { of_run, by_bin: BTreeMap::new() }
    }
}
