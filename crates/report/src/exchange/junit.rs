//! Results in the XML that JUnit made common, which every CI service reads.

use std::fmt::Write as _;

use terms::foreign::xml;

use super::{CaseOutcome, ExportedResults};

impl ExportedResults {
    /// One suite. A case that cannot be told is skipped, and one that must hold is an error then.
    pub fn junit(&self) -> String {
        let count = |outcome| self.cases.iter().filter(|case| case.outcome == outcome).count();
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"{}\"",
            self.cases.len(),
            count(CaseOutcome::Failed),
            count(CaseOutcome::Skipped),
            count(CaseOutcome::Broken)
        );
        let (name, at) = (xml(&self.name), xml(&self.started_at));
        let mut suite = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
             <testsuite name=\"pgrig {name}\" timestamp=\"{at}\" {counts}>\n"
        );
        if !self.sides.is_empty() {
            let sides = xml(&self.sides.join(" "));
            let _ = writeln!(
                suite,
                "    <properties><property name=\"sides\" value=\"{sides}\"/></properties>"
            );
        }
        for case in &self.cases {
            let (case_name, text) = (xml(&case.name), xml(&case.text));
            let inside = match case.outcome {
                CaseOutcome::Passed | CaseOutcome::Harm => {
                    format!("<system-out>{text}</system-out>")
                }
                CaseOutcome::Failed => format!("<failure message=\"{text}\"/>"),
                CaseOutcome::Broken => format!("<error message=\"{text}\"/>"),
                CaseOutcome::Skipped => format!("<skipped message=\"{text}\"/>"),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                suite,
                "    <testcase classname=\"pgrig.{name}\" name=\"{case_name}\">{inside}</testcase>"
            );
        }
        suite.push_str("  </testsuite>\n</testsuites>\n");
        suite
    }
}

#[cfg(test)]
mod tests {
    use super::super::JudgedCase;
    use super::*;

    #[test]
    fn a_suite_has_a_case_for_each_judgement() {
        let case = |name: &str, outcome, text: &str| JudgedCase {
            name: name.to_owned(),
            outcome,
            text: text.to_owned(),
        };
        let results = ExportedResults {
            name: "compare".to_owned(),
            started_at: "2026-11-23T04:00:00Z".to_owned(),
            sides: vec!["A: as it is. B: jit off.".to_owned()],
            harm: Vec::new(),
            answer: String::new(),
            cases: vec![
                case("throughput", CaseOutcome::Failed, "0.9 < 1 & \"worse\""),
                case("p99", CaseOutcome::Skipped, "cannot\ntell"),
                case("cpu", CaseOutcome::Passed, "equal"),
                case("nothing is lost", CaseOutcome::Broken, "never run"),
            ],
            figures: Vec::new(),
            doubts: Vec::new(),
        };
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" skipped="1" errors="1">
  <testsuite name="pgrig compare" timestamp="2026-11-23T04:00:00Z" tests="4" failures="1" skipped="1" errors="1">
    <properties><property name="sides" value="A: as it is. B: jit off."/></properties>
    <testcase classname="pgrig.compare" name="throughput"><failure message="0.9 &lt; 1 &amp; &quot;worse&quot;"/></testcase>
    <testcase classname="pgrig.compare" name="p99"><skipped message="cannot tell"/></testcase>
    <testcase classname="pgrig.compare" name="cpu"><system-out>equal</system-out></testcase>
    <testcase classname="pgrig.compare" name="nothing is lost"><error message="never run"/></testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(results.junit(), expected);
    }
}
