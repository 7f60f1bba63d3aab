//! Exit codes of the program. Every exit code is decided here.

use std::process::ExitCode;

use record::comparison::FailOn;
use spec::ClaimKind;
use verdict::{ClaimVerdict, Verdict};

/// Exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// It could not start: bad arguments, a broken study, no server, no place for the record.
    CouldNotStart,
    /// It ran, but something of it is missing: a trial broke, the record's disk is full.
    Incomplete,
    /// The machine is too small for it, or a part is not installed.
    DoesNotFit,
    /// `--gate`: an invariant does not hold; with `--strict`, a finding does not. `compare`: B is
    /// worse.
    DoesNotHold,
    /// `--gate`: it cannot be told.
    CannotTell,
    /// Interrupted; what was measured is kept.
    Interrupted,
    /// `guard status`: an acknowledged commit may exist on fewer standbys than asked for.
    Exposed,
    /// `guard status`: the server does not answer, or the status cannot be read.
    Unreachable,
    /// `guard status`: too few standbys confirm, so that commits hang.
    Stalled,
    /// `guard status`: commits are covered, and no guard runs.
    Unguarded,
    /// `guard status`: the server is a standby.
    Standby,
}

/// Every way to end, in the words of the help and of docs/commands.md.
pub(crate) const MEANINGS: [(Exit, &str); 7] = [
    (Exit::Done, "done"),
    (Exit::CouldNotStart, "could not start"),
    (Exit::Incomplete, "ran, but something is missing"),
    (Exit::DoesNotFit, "does not fit this machine or target, or a part is not installed"),
    (
        Exit::DoesNotHold,
        "with `--gate`: an invariant or, with `--strict`, a finding fails; B is worse; anomalies found",
    ),
    (Exit::CannotTell, "with `--gate`: cannot tell; `bisect` also without it"),
    (Exit::Interrupted, "interrupted; what was measured is kept"),
];

/// The ways to end of `guard status`, in the words of docs/guard.md. A monitor reads them.
#[cfg(test)]
const GUARD_STATUS: [(Exit, &str); 6] = [
    (
        Exit::Done,
        "covered: commits wait for as many standbys as asked for, these confirm, no window is open, and a guard runs",
    ),
    (
        Exit::Exposed,
        "exposed: a window is open, the setting in force is weaker than asked for, or commits wait for no standby",
    ),
    (Exit::Unreachable, "unreachable: the server does not answer, or the status cannot be read"),
    (Exit::Stalled, "stalled: too few standbys confirm, so that commits hang"),
    (Exit::Unguarded, "unguarded: as 0, but no guard runs"),
    (Exit::Standby, "standby: the server has no commits of its own"),
];

/// The exit code of a gate through which these claims must pass.
pub(crate) fn of_claims<'c>(claims: impl Iterator<Item = &'c ClaimVerdict> + Clone) -> Exit {
    let any = |verdict| claims.clone().any(|claim| claim.verdict == verdict);
    match () {
        () if any(Verdict::DoesNotHold) => Exit::DoesNotHold,
        () if any(Verdict::CannotTell) => Exit::CannotTell,
        () => Exit::Done,
    }
}

/// The exit code of a comparison, whose gate fails on what the user has chosen. A finding of its record is a figure
/// out of reach, which another one makes up for.
pub(crate) fn of_comparison(claims: &[ClaimVerdict], fail_on: Option<FailOn>) -> Exit {
    let claims = claims.iter().filter(|claim| claim.kind != ClaimKind::Finding);
    match (of_claims(claims), fail_on) {
        (_, None) | (Exit::CannotTell, Some(FailOn::Worse)) => Exit::Done,
        (exit, Some(_)) => exit,
    }
}

impl Exit {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::CouldNotStart | Exit::Exposed => 1,
            Exit::Incomplete | Exit::Unreachable => 2,
            Exit::DoesNotFit | Exit::Stalled => 3,
            Exit::DoesNotHold | Exit::Unguarded => 4,
            Exit::CannotTell | Exit::Standby => 5,
            // 128 + SIGINT, as shells have it.
            Exit::Interrupted => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_that_scripts_rely_on() {
        let check = |exit: Exit, expected| assert_eq!(exit.number(), expected, "{exit:?}");
        check(Exit::Done, 0);
        check(Exit::CouldNotStart, 1);
        check(Exit::Incomplete, 2);
        check(Exit::DoesNotFit, 3);
        check(Exit::DoesNotHold, 4);
        check(Exit::CannotTell, 5);
        check(Exit::Interrupted, 130);
    }

    #[test]
    fn a_comparison_fails_on_what_was_asked() {
        let check = |verdict: Verdict, expected: [Exit; 3]| {
            let claim = ClaimVerdict {
                says: String::new(),
                kind: spec::ClaimKind::Invariant,
                rank: spec::Rank::Aside,
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
        check(Verdict::Holds, [Exit::Done; 3]);
        check(Verdict::DoesNotHold, [Exit::Done, Exit::DoesNotHold, Exit::DoesNotHold]);
        check(Verdict::CannotTell, [Exit::Done, Exit::Done, Exit::CannotTell]);
    }

    #[test]
    fn the_pages_have_the_same_tables() {
        let check = |page: &str, meanings: &[(Exit, &str)]| {
            let rows = meanings
                .iter()
                .map(|(exit, meaning)| format!("| {} | {meaning} |\n", exit.number()));
            let rows = rows.collect::<String>();
            assert!(page.contains(&rows), "the page lacks\n{rows}");
        };
        check(include_str!("../../../docs/commands.md"), &MEANINGS);
        check(include_str!("../../../docs/guard.md"), &GUARD_STATUS);
    }
}
