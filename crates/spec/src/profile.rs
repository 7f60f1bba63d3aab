//! The sizes in which a study can run.

use std::fmt;
use std::str::FromStr;

use crate::folder::StudyFolder;

/// Size at which a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StudyProfile {
    /// Seconds: proves that every part works; its figures mean nothing.
    Smoke,
    /// Minutes on two cores.
    Quick,
    /// What a source printed, met once on a small machine, in hours: counts as printed, data and windows as the
    /// study gives them for it. Where it gives none, those of the profile full hold. Only a study with
    /// [published figures](Folder::PUBLISHED) has it.
    Published,
    /// The published size.
    Full,
}

impl StudyProfile {
    /// All of them, smallest first.
    pub const ALL: [StudyProfile; 4] =
        [StudyProfile::Smoke, StudyProfile::Quick, StudyProfile::Published, StudyProfile::Full];

    /// Those in which a study can run, smallest first.
    pub fn of(folder: &StudyFolder) -> impl DoubleEndedIterator<Item = StudyProfile> {
        let rests_on_source = folder.files.contains_key(StudyFolder::PUBLISHED);
        StudyProfile::ALL
            .into_iter()
            .filter(move |profile| rests_on_source || *profile != StudyProfile::Published)
    }

    /// The name in study.toml and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            StudyProfile::Smoke => "smoke",
            StudyProfile::Quick => "quick",
            StudyProfile::Published => "published",
            StudyProfile::Full => "full",
        }
    }
}

impl fmt::Display for StudyProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for StudyProfile {
    type Err = String;

    fn from_str(name: &str) -> Result<StudyProfile, String> {
        StudyProfile::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
            format!("unknown profile \"{name}\": there is smoke, quick, published, full")
        })
    }
}
