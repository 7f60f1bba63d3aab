//! The sizes in which a study can run.

use std::fmt;
use std::str::FromStr;

use crate::folder::Folder;

/// Size at which a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
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

impl Profile {
    /// All of them, smallest first.
    pub const ALL: [Profile; 4] =
        [Profile::Smoke, Profile::Quick, Profile::Published, Profile::Full];

    /// Those in which a study can run, smallest first.
    pub fn of(folder: &Folder) -> impl DoubleEndedIterator<Item = Profile> {
        let rests_on_source = folder.files.contains_key(Folder::PUBLISHED);
        Profile::ALL
            .into_iter()
            .filter(move |profile| rests_on_source || *profile != Profile::Published)
    }

    /// Its name in study.toml and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Smoke => "smoke",
            Profile::Quick => "quick",
            Profile::Published => "published",
            Profile::Full => "full",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Profile, String> {
        Profile::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
            format!("unknown profile \"{name}\": there is smoke, quick, published, full")
        })
    }
}
