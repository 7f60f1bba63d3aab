//! A folder of a workload, read again for a load.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::error::WorkloadError;

/// `workload.toml`, as far as a load needs it.
#[derive(Deserialize)]
struct WorkloadFile {
    format: u64,
    #[serde(default)]
    script: Vec<WorkloadScript>,
}

/// One of its scripts.
#[derive(Deserialize)]
struct WorkloadScript {
    file: PathBuf,
    covered: bool,
    weight: u64,
    share_of_time: Option<f64>,
}

/// A script that a load runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CoveredScript {
    /// The file.
    pub path: PathBuf,
    /// The share of the transactions is its weight over the sum of weights.
    pub weight: u64,
    /// The share of the time of all statements that the source saw, 0 to 1; none where the folder does not say.
    pub time_share: Option<f64>,
}

/// The format that [`crate::folder`] writes.
const FORMAT: u64 = 1;

/// The scripts of a folder that a load runs: those that its `workload.toml` calls covered.
///
/// # Errors
/// If the file cannot be read, is none that pgrig writes, leads out of the folder, or has no such script.
pub fn covered_scripts(directory: &Path) -> Result<Vec<CoveredScript>, WorkloadError> {
    let path = directory.join("workload.toml");
    let text = fs::read_to_string(&path).map_err(|source| WorkloadError::NoFolder {
        path: path.clone(),
        why: source.to_string(),
    })?;
    scripts_of(&text, directory).map_err(|why| WorkloadError::NoFolder { path, why })
}

/// The covered scripts of the text of a `workload.toml`, or the reason why there are none.
pub(crate) fn scripts_of(text: &str, directory: &Path) -> Result<Vec<CoveredScript>, String> {
    let file: WorkloadFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    if file.format != FORMAT {
        return Err(format!("its format is {}, and this pgrig reads {FORMAT}", file.format));
    }
    let is_inside =
        |file: &Path| file.components().all(|part| matches!(part, Component::Normal(_)));
    let mut scripts = Vec::new();
    for one in file.script.into_iter().filter(|one| one.covered) {
        if !is_inside(&one.file) {
            return Err(format!("{} leads out of the folder", one.file.display()));
        }
        scripts.push(CoveredScript {
            path: directory.join(one.file),
            weight: one.weight,
            time_share: one.share_of_time,
        });
    }
    match scripts.is_empty() {
        true => Err("it covers no script".to_owned()),
        false => Ok(scripts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_scripts_are_found_with_their_weights() {
        let directory = tempfile::tempdir().unwrap();
        let check = |text: &str, expected: Result<&[(&str, u64, f64)], &str>| {
            fs::write(directory.path().join("workload.toml"), text).unwrap();
            match (covered_scripts(directory.path()), expected) {
                (Ok(found), Ok(expected)) => {
                    let expected: Vec<_> = expected
                        .iter()
                        .map(|(file, weight, time_share)| CoveredScript {
                            path: directory.path().join(file),
                            weight: *weight,
                            time_share: Some(*time_share),
                        })
                        .collect();
                    assert_eq!(found, expected, "{text}");
                }
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, expected) => panic!("{text}: {found:?}, and not {expected:?}"),
            }
        };
        let script = |file: &str, covered: bool| {
            format!(
                "[[script]]\nfile = \"{file}\"\ncovered = {covered}\nweight = 7\ncalls = 3\nshare_of_time = 0.25\n"
            )
        };
        let both = script("scripts/1.sql", true) + &script("not-covered/2.sql", false);
        check(&format!("format = 1\n{both}"), Ok(&[("scripts/1.sql", 7, 0.25)]));
        check(&format!("format = 2\n{both}"), Err("its format is 2"));
        check("format = 1\n", Err("it covers no script"));
        check(&format!("format = 1\n{}", script("../1.sql", true)), Err("leads out of the folder"));
        check("format = [", Err("workload.toml"));
    }
}
