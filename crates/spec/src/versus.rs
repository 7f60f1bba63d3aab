//! Two points of a study against each other, each under the name of its side.

use terms::Settings;

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::initdb::InitdbOption;
use crate::named::NamedItem;
use crate::point::TrialPoint;
use crate::problem::{Problems, StudyProblem};
use crate::study::{Study, StudyStatements, claims};
use crate::value;

impl TrialPoint {
    /// Gives every PostgreSQL server these settings and options of initdb beside its own; the new value of a setting
    /// wins.
    pub fn give(&mut self, settings: &Settings, initdb: &[InitdbOption]) {
        for node in self.topology.nodes.iter_mut().filter(|node| node.is_postgres()) {
            node.settings.extend(settings.iter());
            node.initdb.extend(initdb.iter().cloned());
        }
    }

    /// Gives every PostgreSQL server these settings and options of initdb where it has none of its own.
    pub fn give_base(&mut self, settings: &Settings, initdb: &[InitdbOption]) {
        for node in self.topology.nodes.iter_mut().filter(|node| node.is_postgres()) {
            let own = std::mem::replace(&mut node.settings, settings.clone());
            node.settings.extend(own);
            node.initdb.splice(..0, initdb.iter().cloned());
        }
    }
}

impl Study {
    /// The study of two of its points, each as the variant that has the name of its side. Its own claims,
    /// tables and answer are left out.
    #[must_use]
    pub fn versus(&self, points: [usize; 2], sides: [&str; 2]) -> Study {
        let side = |side: usize| {
            let mut point = self.points[points[side]].clone();
            sides[side].clone_into(&mut point.name.variant);
            point
        };
        let named = |name: &str| NamedItem { name: name.to_owned(), says: String::new() };
        Study {
            points: vec![side(0), side(1)],
            variants: sides.map(named).into(),
            claims: Vec::new(),
            expected: Vec::new(),
            tables: Vec::new(),
            published: Vec::new(),
            answer: None,
            twin: None,
            ..self.clone()
        }
    }

    /// The same study with the claims of a text, in the place of its own.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn with_claims(self, text: &str) -> Result<Study, Vec<StudyProblem>> {
        let problems = Problems::of(StudyFolder::STUDY);
        let table = value::parse(text, &problems);
        let fields = Fields::new("claims", &table, 0..0, &problems);
        let StudyStatements { claims, .. } =
            claims(&fields, text, self.profile, &self.points, false);
        fields.finish();
        let found = problems.into_sorted();
        if found.is_empty() { Ok(Study { claims, ..self }) } else { Err(found) }
    }
}
