//! The page of all records below a folder, `pgrig view`.

use crate::exchange::{CaseOutcome, ExportedResults};
use crate::listed::{ListedAnswer, ListedRecord, ListedState};
use crate::page::{ShelfPage, rendered};

impl ListedAnswer {
    /// What a list shows of a record's results.
    #[must_use]
    pub fn of(results: &ExportedResults) -> ListedAnswer {
        let count = |is: &dyn Fn(CaseOutcome) -> bool| {
            results.cases.iter().filter(|case| is(case.outcome)).count()
        };
        let holds = count(&|one| matches!(one, CaseOutcome::Passed | CaseOutcome::Harm));
        let fails = count(&|one| one == CaseOutcome::Failed);
        let claims = [holds, fails, results.cases.len() - holds - fails];
        ListedAnswer { sentence: results.answer.clone(), claims }
    }

    /// `3 hold, 1 does not, 2 cannot be told`
    pub(crate) fn tally(&self) -> String {
        let [holds, fails, unsure] = self.claims;
        let parts = [
            (holds, if holds == 1 { "holds" } else { "hold" }),
            (fails, if fails == 1 { "does not" } else { "do not" }),
            (unsure, "cannot be told"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

/// The records below a folder, the newest first, as a page that asks for news below its own address. `unread` is the
/// number of those whose answer is still being read, `left_out` says what is not shown.
#[must_use]
pub fn shelf(folder: &str, records: &[ListedRecord], left_out: &str) -> String {
    let unread = records.iter().filter(|record| record.read.is_none()).count();
    rendered(&ShelfPage {
        folder: folder.to_owned(),
        running: records.iter().filter(|record| record.state.is_running()).cloned().collect(),
        states: ListedState::WORDS
            .into_iter()
            .filter(|word| records.iter().any(|record| record.state.word() == *word))
            .collect(),
        unread,
        left_out: left_out.to_owned(),
        records: records.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_names_what_there_is() {
        let check = |claims: [usize; 3], expected: &str| {
            assert_eq!(ListedAnswer { sentence: String::new(), claims }.tally(), expected);
        };
        check([3, 1, 2], "3 hold, 1 does not, 2 cannot be told");
        check([1, 0, 0], "1 holds");
        check([0, 0, 0], "");
    }
}
