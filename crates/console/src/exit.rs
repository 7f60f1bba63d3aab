//! Exit codes of the programs.

use std::process::ExitCode;

/// The way in which a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    /// It has done what was asked.
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

impl ProgramExit {
    /// The exit code, for the end of `main`.
    pub fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }

    /// The exit code as a number.
    pub fn number(self) -> u8 {
        match self {
            ProgramExit::Done => 0,
            ProgramExit::CouldNotStart | ProgramExit::Exposed => 1,
            ProgramExit::Incomplete | ProgramExit::Unreachable => 2,
            ProgramExit::DoesNotFit | ProgramExit::Stalled => 3,
            ProgramExit::DoesNotHold | ProgramExit::Unguarded => 4,
            ProgramExit::CannotTell | ProgramExit::Standby => 5,
            // 128 + SIGINT, as shells have it.
            ProgramExit::Interrupted => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_that_scripts_rely_on() {
        let check = |exit: ProgramExit, expected| assert_eq!(exit.number(), expected, "{exit:?}");
        check(ProgramExit::Done, 0);
        check(ProgramExit::CouldNotStart, 1);
        check(ProgramExit::Incomplete, 2);
        check(ProgramExit::DoesNotFit, 3);
        check(ProgramExit::DoesNotHold, 4);
        check(ProgramExit::CannotTell, 5);
        check(ProgramExit::Interrupted, 130);
    }
}
