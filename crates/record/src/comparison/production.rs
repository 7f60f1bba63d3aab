//! What the servers of a comparison were given of production.

use serde::{Deserialize, Serialize};

/// What servers that pgrig has made were given of production.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenOfProduction {
    /// Sentences about the locale of databases and about the data directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<String>,
    /// Servers and files whose settings are the base of both sides; none where that is the server's defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings_of: Vec<String>,
    /// Settings of production that are others here, or missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedSetting>,
}

/// A setting of production that servers of pgrig's have not as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedSetting {
    /// The setting.
    pub name: String,
    /// The value in production.
    pub there: String,
    /// The value here; none where it is left out.
    pub here: Option<String>,
    /// The reason, in a few words.
    pub why: String,
}

impl ChangedSetting {
    /// `shared_buffers 64GB → 1GB (the memory of this machine)`
    fn words(&self) -> String {
        let ChangedSetting { name, there, here, why } = self;
        let here = here.as_deref().unwrap_or("left out");
        format!("{name} {there} → {here} ({why})")
    }
}

impl GivenOfProduction {
    /// True if nothing was given.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == GivenOfProduction::default()
    }

    /// What was given, in sentences.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = self.sentences.clone();
        if !self.settings_of.is_empty() {
            words.push(format!("Settings are those of {}.", self.settings_of.join(" and ")));
        }
        if !self.changed.is_empty() {
            let mut changed: Vec<String> = self.changed.iter().map(ChangedSetting::words).collect();
            changed.dedup();
            words.push(format!("Of production's settings differ here: {}.", changed.join("; ")));
        }
        words
    }
}
