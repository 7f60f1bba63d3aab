//! Exit codes of the program. Every exit code is decided here.

use std::process::ExitCode;

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
}

/// Every way to end, in the words of the help and of docs/commands.md.
pub(crate) const MEANINGS: [(Exit, &str); 7] = [
    (Exit::Done, "done"),
    (Exit::CouldNotStart, "could not start"),
    (Exit::Incomplete, "ran, but something is missing"),
    (Exit::DoesNotFit, "does not fit this machine or target, or a part is not installed"),
    (
        Exit::DoesNotHold,
        "with `--gate`: an invariant does not hold, or with `--strict` a finding; B of `compare` \
         is worse",
    ),
    (Exit::CannotTell, "with `--gate`: cannot tell"),
    (Exit::Interrupted, "interrupted; what was measured is kept"),
];

impl Exit {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::CouldNotStart => 1,
            Exit::Incomplete => 2,
            Exit::DoesNotFit => 3,
            Exit::DoesNotHold => 4,
            Exit::CannotTell => 5,
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
    fn the_page_of_commands_has_the_same_table() {
        let rows = MEANINGS.map(|(exit, meaning)| format!("| {} | {meaning} |\n", exit.number()));
        let page = include_str!("../../../docs/commands.md");
        assert!(page.contains(&rows.concat()), "docs/commands.md lacks\n{}", rows.concat());
    }
}
