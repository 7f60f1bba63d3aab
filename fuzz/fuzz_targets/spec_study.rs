//! Any text as study.toml and published.csv of a folder with one script: a study or problems.

#![no_main]

use libfuzzer_sys::fuzz_target;
use spec::{Study, StudyFolder, StudyProfile};

fuzz_target!(|text: &str| {
    let (study, published) = text.split_once('\u{1}').unwrap_or((text, ""));
    let mut folder = StudyFolder { name: "fuzz".to_owned(), ..StudyFolder::default() };
    folder.files.insert(StudyFolder::STUDY.to_owned(), study.to_owned());
    folder.files.insert("w.sql".to_owned(), "SELECT :scale;\n".to_owned());
    if !published.is_empty() {
        folder.files.insert(StudyFolder::PUBLISHED.to_owned(), published.to_owned());
    }
    for profile in StudyProfile::ALL {
        match Study::parse(&folder, profile) {
            Ok(study) => assert!(!study.points.is_empty()),
            Err(problems) => assert!(!problems.is_empty()),
        }
    }
});
