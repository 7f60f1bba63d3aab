//! The three sizes in which every study can run.

use std::fmt;
use std::str::FromStr;

/// Size at which a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// Seconds: proves that every part works; its figures mean nothing.
    Smoke,
    /// Minutes on two cores.
    Quick,
    /// The published size.
    Full,
}

impl Profile {
    /// All of them, smallest first.
    pub const ALL: [Profile; 3] = [Profile::Smoke, Profile::Quick, Profile::Full];

    /// Its name in study.toml and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Smoke => "smoke",
            Profile::Quick => "quick",
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
        Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| format!("unknown profile \"{name}\": there is smoke, quick, full"))
    }
}
