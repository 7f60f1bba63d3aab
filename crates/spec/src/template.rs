//! A small study to start from.

use std::collections::BTreeMap;

use crate::folder::StudyFolder;

/// The folder that `pgrig new` writes: a commented study that runs as it is.
pub fn template(name: &str) -> StudyFolder {
    let files = [
        (StudyFolder::STUDY, include_str!("template/study.toml")),
        ("init.sql", include_str!("template/init.sql")),
        ("orders.sql", include_str!("template/orders.sql")),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    StudyFolder { name: name.to_owned(), files: BTreeMap::from(files), is_private: false }
}

/// The folder that `pgrig new --explore` writes: the states that a power cut could have left of a load
/// of the user's.
pub fn explore_template(name: &str) -> StudyFolder {
    let files = [
        (StudyFolder::STUDY, include_str!("template/explore/study.toml")),
        ("init.sql", include_str!("template/explore/init.sql")),
        ("load.sql", include_str!("template/explore/load.sql")),
        ("items.sql", include_str!("template/explore/items.sql")),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    StudyFolder { name: name.to_owned(), files: BTreeMap::from(files), is_private: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Study, StudyProfile};

    #[test]
    fn the_study_to_start_from_is_one() {
        for profile in StudyProfile::of(&template("mine")) {
            let study = Study::parse(&template("mine"), profile).unwrap();
            // Variants times clients, and the A/A.
            let points = if profile == StudyProfile::Smoke { 4 } else { 5 };
            assert_eq!(study.points.len(), points);
            assert_eq!(study.claims.len(), 2);
            assert!(study.answer.is_some());
            let study = Study::parse(&explore_template("mine"), profile).unwrap();
            assert_eq!((study.points.len(), study.claims.len()), (2, 2));
        }
    }
}
