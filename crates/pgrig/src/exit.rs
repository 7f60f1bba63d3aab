//! Exit codes of the program. Every exit code is decided here.

use record::comparison::FailOn;
use spec::ClaimKind;
use verdict::{ClaimVerdict, Verdict};

pub(crate) use console::ProgramExit;

/// Every way to end, in the words of the help and of docs/commands.md.
pub(crate) const MEANINGS: [(ProgramExit, &str); 7] = [
    (ProgramExit::Done, "done"),
    (ProgramExit::CouldNotStart, "could not start"),
    (ProgramExit::Incomplete, "ran, but something is missing"),
    (ProgramExit::DoesNotFit, "does not fit this machine or target, or a part is not installed"),
    (
        ProgramExit::DoesNotHold,
        "`verify`: different; with `--gate`: an invariant or (`--strict`) finding fails; B worse; anomalies",
    ),
    (ProgramExit::CannotTell, "with `--gate`: cannot tell; `bisect` also without it"),
    (ProgramExit::Interrupted, "interrupted; what was measured is kept"),
];

/// The exit code of a gate through which these claims must pass.
pub(crate) fn of_claims<'c>(claims: impl Iterator<Item = &'c ClaimVerdict> + Clone) -> ProgramExit {
    let any = |verdict| claims.clone().any(|claim| claim.verdict == verdict);
    match () {
        () if any(Verdict::DoesNotHold) => ProgramExit::DoesNotHold,
        () if any(Verdict::CannotTell) => ProgramExit::CannotTell,
        () => ProgramExit::Done,
    }
}

/// The exit code of a comparison, whose gate fails on what the user has chosen. A finding of its record is a figure
/// out of reach, which another one makes up for.
pub(crate) fn of_comparison(claims: &[ClaimVerdict], fail_on: Option<FailOn>) -> ProgramExit {
    let claims = claims.iter().filter(|claim| claim.kind != ClaimKind::Finding);
    match (of_claims(claims), fail_on) {
        (_, None) | (ProgramExit::CannotTell, Some(FailOn::Worse)) => ProgramExit::Done,
        (exit, Some(_)) => exit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_fails_on_what_was_asked() {
        let check = |verdict: Verdict, expected: [ProgramExit; 3]| {
            let claim = ClaimVerdict {
                says: String::new(),
                kind: spec::ClaimKind::Invariant,
                rank: spec::ClaimRank::Aside,
                expected: String::new(),
                published: None,
                needs_harm: false,
                note: String::new(),
                measured: verdict::ClaimMeasurement::Nothing,
                verdict,
                alone: verdict,
                why: String::new(),
            };
            let asked = [None, Some(FailOn::Worse), Some(FailOn::WorseOrUnknown)];
            let seen = asked.map(|fail_on| of_comparison(std::slice::from_ref(&claim), fail_on));
            assert_eq!(seen, expected, "{verdict:?}");
        };
        check(Verdict::Holds, [ProgramExit::Done; 3]);
        check(
            Verdict::DoesNotHold,
            [ProgramExit::Done, ProgramExit::DoesNotHold, ProgramExit::DoesNotHold],
        );
        check(Verdict::CannotTell, [ProgramExit::Done, ProgramExit::Done, ProgramExit::CannotTell]);
    }

    #[test]
    fn the_page_has_the_same_table() {
        let row =
            |(exit, meaning): (ProgramExit, &str)| format!("| {} | {meaning} |\n", exit.number());
        let rows = MEANINGS.map(row).concat();
        assert!(include_str!("../../../docs/commands.md").contains(&rows), "no table\n{rows}");
    }
}
