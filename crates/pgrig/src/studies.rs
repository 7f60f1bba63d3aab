//! Sources of studies: the ones inside the program, or a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spec::{Study, StudyFolder, StudyProfile};

use crate::complaint::Complaint;

/// A study's folder and where it was found.
#[derive(Debug)]
pub(crate) struct NamedStudy {
    pub(crate) folder: StudyFolder,
    /// As it was named, for messages and for running it again.
    pub(crate) place: String,
}

impl NamedStudy {
    /// The same with these values in the place of the study's.
    pub(crate) fn with(self, set: &[(String, String)]) -> NamedStudy {
        NamedStudy { folder: self.folder.with_set(set), ..self }
    }
}

/// The studies inside the program, by name.
pub(crate) fn shipped() -> Vec<StudyFolder> {
    let folders = SHIPPED.iter().map(|(name, files)| {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        StudyFolder {
            name: (*name).to_owned(),
            files: files.collect::<BTreeMap<_, _>>(),
            is_private: false,
        }
    });
    folders.collect()
}

/// True if every file of a shipped study is in the folder, unchanged and without set values: whoever trusts
/// pgrig trusts what it runs.
pub(crate) fn is_shipped(folder: &StudyFolder) -> bool {
    let has = |(name, text): (&String, &String)| folder.files.get(name) == Some(text);
    !folder.files.contains_key(StudyFolder::SET)
        && shipped().iter().any(|one| one.files.iter().all(has))
}

/// The study that a command names.
///
/// # Errors
/// It names none; the command line asks for one where it is needed.
pub(crate) fn named(study: Option<&str>) -> Result<&str, Complaint> {
    study.ok_or_else(|| {
        let hint = "name one of `pgrig studies`, or a folder with a study.toml";
        Complaint::new("no study is named").hinted(Some(hint))
    })
}

/// The study of that name: a folder where there is one with a study.toml, else a shipped
/// study.
pub(crate) fn find(name: &str) -> Result<NamedStudy, Complaint> {
    // The file stands for its folder.
    let is_there = Path::new(name).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let folder = name.strip_suffix(StudyFolder::STUDY).filter(|_| is_there);
    let name = folder.map_or(name, |folder| if folder.is_empty() { "." } else { folder });
    let path = Path::new(name);
    let place = name.trim_end_matches('/').to_owned();
    if path.join(StudyFolder::STUDY).symlink_metadata().is_ok() {
        return Ok(NamedStudy { folder: record::read_folder(path)?, place });
    }
    let shipped = shipped();
    let names: Vec<&str> = shipped.iter().map(|folder| folder.name.as_str()).collect();
    let known = format!("there is {}; or name a folder with a study.toml", names.join(", "));
    match shipped.iter().find(|folder| folder.name == name) {
        Some(folder) => Ok(NamedStudy { folder: folder.clone(), place }),
        None if path.is_dir() => {
            let what = format!("the folder \"{name}\" holds no study.toml");
            Err(Complaint::new(what).hinted(Some("`pgrig new DIR` writes one to start from")))
        }
        None if name.contains('/') => {
            let what = format!("there is no folder \"{name}\" with a study");
            Err(Complaint::new(what).hinted(Some("`pgrig new DIR` makes one to start from")))
        }
        None => Err(Complaint::new(format!("no study \"{name}\"")).hinted(Some(known))),
    }
}

/// The study of a folder in one profile, or its mistakes, pointed at.
pub(crate) fn parse(found: &NamedStudy, profile: StudyProfile) -> Result<Study, Complaint> {
    let NamedStudy { folder, place } = found;
    let mut plain = folder.clone();
    let is_set = plain.files.remove(StudyFolder::SET).is_some();
    // The study's own mistakes are pointed at in its file, which knows nothing of set values.
    let study = Study::parse(&plain, profile)
        .map_err(|problems| Complaint::of_problems(folder, place, &problems))?;
    if !is_set {
        return Ok(study);
    }
    Study::parse(folder, profile).map_err(|problems| {
        let first = problems.first();
        let (message, hint) =
            first.map_or(("", None), |problem| (problem.message.as_str(), problem.hint.as_ref()));
        let blamed = blamed(folder, profile, message);
        let what = blamed.map_or("values".to_owned(), |line| line.replace('"', ""));
        Complaint::new(format!("setting {what} in {place}: {message}")).hinted(hint)
    })
}

/// The line of set.toml without which a study would not have this mistake.
fn blamed<'f>(folder: &'f StudyFolder, profile: StudyProfile, message: &str) -> Option<&'f str> {
    let lines: Vec<&str> = folder.files[StudyFolder::SET].lines().collect();
    let is_to_blame = |without: &usize| {
        let mut others = folder.clone();
        let text = lines.iter().enumerate().filter(|(at, _)| at != without);
        let text = text.map(|(_, line)| format!("{line}\n")).collect();
        others.files.insert(StudyFolder::SET.to_owned(), text);
        let problems = Study::parse(&others, profile).err();
        problems.is_none_or(|found| found.iter().all(|problem| problem.message != message))
    };
    (0..lines.len()).find(is_to_blame).map(|at| lines[at])
}

/// Name → file name → text.
type Table = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const SHIPPED: Table = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// The path of this program, which the rig starts again as guards, relays and generators.
pub(crate) fn program() -> Result<PathBuf, Complaint> {
    std::env::current_exe()
        .map_err(|error| Complaint::new(format!("finding the program's own path: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_study_is_one_in_every_profile() {
        let shipped = shipped();
        assert!(!shipped.is_empty());
        for folder in shipped {
            let place = folder.name.clone();
            let found = NamedStudy { folder, place };
            for profile in StudyProfile::of(&found.folder) {
                assert!(parse(&found, profile).is_ok(), "{} in {profile}", found.place);
            }
        }
    }
}
