//! Any text as study.toml and published.csv of a folder with one script: a study or problems.

#![no_main]

use libfuzzer_sys::fuzz_target;
use spec::{Folder, Profile, Study};

fuzz_target!(|text: &str| {
    let (study, published) = text.split_once('\u{1}').unwrap_or((text, ""));
    let mut folder = Folder { name: "fuzz".to_owned(), ..Folder::default() };
    folder.files.insert(Folder::STUDY.to_owned(), study.to_owned());
    folder.files.insert("w.sql".to_owned(), "SELECT :scale;\n".to_owned());
    if !published.is_empty() {
        folder.files.insert(Folder::PUBLISHED.to_owned(), published.to_owned());
    }
    for profile in Profile::ALL {
        match Study::parse(&folder, profile) {
            Ok(study) => assert!(!study.points.is_empty()),
            Err(problems) => assert!(!problems.is_empty()),
        }
    }
});
