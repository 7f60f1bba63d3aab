//! Mistakes in a study, and their places.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// One thing that is wrong, with the place to point at. Several are found at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyProblem {
    /// The file of the study's folder that it is in.
    pub file: String,
    /// Bytes of that file to point at.
    pub span: Range<usize>,
    /// The mistake, as a lowercase fragment.
    pub message: String,
    /// The advice on how to correct it.
    pub hint: Option<String>,
}

impl fmt::Display for StudyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// Collects problems. Parts of a study are read once for every point that uses them, so the same
/// problem arrives many times and is kept once.
pub(crate) struct Problems {
    file: &'static str,
    found: RefCell<Vec<StudyProblem>>,
}

impl Problems {
    pub(crate) fn of(file: &'static str) -> Problems {
        Problems { file, found: RefCell::default() }
    }

    pub(crate) fn add(&self, span: &Range<usize>, message: impl Into<String>) {
        self.push(span, message.into(), None);
    }

    pub(crate) fn hinted(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(span, message.into(), Some(hint.into()));
    }

    /// Something is named that does not exist; the nearest name that does becomes the hint.
    pub(crate) fn unknown<'n>(
        &self,
        span: &Range<usize>,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        self.push(span, format!("unknown {what} \"{name}\""), nearest(name, &known));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// All of them, in the order of the file.
    pub(crate) fn into_sorted(self) -> Vec<StudyProblem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.span.start);
        found
    }

    fn push(&self, span: &Range<usize>, message: String, hint: Option<String>) {
        let problem =
            StudyProblem { file: self.file.to_owned(), span: span.clone(), message, hint };
        let mut found = self.found.borrow_mut();
        if found.len() < PROBLEMS_MAX && !found.contains(&problem) {
            found.push(problem);
        }
    }
}

/// More problems than these have one cause. Each is compared with the others and drawn from the whole
/// file.
pub const PROBLEMS_MAX: usize = 50;

/// The name that was probably meant; where nothing is near, the names that there are.
pub fn nearest(name: &str, known: &[&str]) -> Option<String> {
    let near = known
        .iter()
        .filter(|_| name.len() <= NAME_BYTES_MAX)
        .map(|known| (strsim::damerau_levenshtein(name, known), *known))
        .min()
        .filter(|(distance, known)| *distance <= slips_max(known.len().min(name.len())));
    match near {
        Some((_, near)) => Some(format!("did you mean \"{near}\"?")),
        None if known.is_empty() => None,
        None if known.len() <= LISTED_MAX => Some(format!("there is {}", known.join(", "))),
        None => None,
    }
}

/// Slips of the fingers that a name of this length may have: of a short one more than half stays.
fn slips_max(length: usize) -> usize {
    (1 + length / 4).min((length / 2).saturating_sub(1)).max(1)
}

/// Nobody has typed a longer name by mistake.
const NAME_BYTES_MAX: usize = 100;

/// A longer list of names is noise rather than help.
const LISTED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_what_was_probably_meant() {
        let check = |name, hint: Option<&str>| {
            assert_eq!(nearest(name, &["clients", "protocol", "to"]).as_deref(), hint);
        };
        assert_eq!(
            nearest("xmin", &["jain", "standstill_s"]),
            Some("there is jain, standstill_s".to_owned())
        );
        check("client", Some("did you mean \"clients\"?"));
        check("protcol", Some("did you mean \"protocol\"?"));
        check("speed", Some("there is clients, protocol, to"));
        assert_eq!(nearest("x", &[]), None);
    }
}
