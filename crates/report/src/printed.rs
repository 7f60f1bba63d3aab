//! Printed figures of a source beside what records say of them: one table a study, in Markdown, for a page
//! that says of each figure by which record it was met.

use std::fmt::Write as _;

use record::RecordHeader;
use spec::Study;
use terms::foreign::markdown;
use verdict::ClaimVerdict;

use crate::claims::{self, outcome};
use crate::number;

/// What one record says of the claims of a study.
#[derive(Clone, Debug)]
pub struct ClaimAnswers {
    /// The record's first file.
    pub header: RecordHeader,
    /// The record's digest, as hexadecimal digits.
    pub digest: String,
    /// What became of its claims.
    pub claims: Vec<ClaimVerdict>,
}

impl ClaimAnswers {
    /// What it measured of the claim; none where it measured nothing.
    fn of(&self, says: &str) -> Option<&ClaimVerdict> {
        let claim = self.claims.iter().find(|claim| claim.says == says)?;
        claim.measured.figures().measured.map(|_| claim)
    }
}

/// As many digits of a digest as tell the records of a page from each other.
const DIGEST_DIGITS: usize = 12;

/// Every claim of the study with a printed value: the value, what the newest record that measured it found, the
/// verdict, and the record. `study` is the study in the profile with all of these claims.
#[must_use]
pub fn printed(study: &Study, records: &[ClaimAnswers]) -> String {
    let mut records: Vec<&ClaimAnswers> =
        records.iter().filter(|met| met.header.study == study.name).collect();
    records.sort_by(|a, b| b.header.started_at.cmp(&a.header.started_at));
    let mut rows = String::new();
    let (mut met, mut all) = (0, 0);
    for claim in &study.claims {
        let Some(published) = claim.published else { continue };
        all += 1;
        let newest = records.iter().find_map(|record| Some((record, record.of(&claim.says)?)));
        let cells = match newest {
            Some((record, judged)) => {
                met += 1;
                let [here, interval, n, _] = claims::measured(&judged.measured);
                let mark = outcome(judged);
                let why =
                    if judged.why.is_empty() { String::new() } else { format!(": {}", judged.why) };
                let RecordHeader { profile, started_at, .. } = &record.header;
                let date = started_at.get(..10).unwrap_or(started_at);
                let digest = record.digest.get(..DIGEST_DIGITS).unwrap_or(&record.digest);
                [
                    format!("{here} {interval}").trim_end().to_owned(),
                    n,
                    format!("{}{why}", mark.word()),
                    format!("{profile}, {date}"),
                    digest.to_owned(),
                ]
            }
            None => ["–", "–", "not measured", "–", "–"].map(str::to_owned),
        };
        let published = number::as_written(published);
        let cells = [claim.says.clone(), published].into_iter().chain(cells);
        let cells: Vec<String> = cells.map(|cell| markdown(&cell)).collect();
        let _ = writeln!(rows, "| {} |", cells.join(" | "));
    }
    format!(
        "### {}: {met} of {all} printed values met\n\n\
         | claim of the source | printed | here | n | verdict | profile, date | record |\n\
         |---|--:|---|--:|---|---|---|\n{rows}",
        markdown(&study.name)
    )
}
