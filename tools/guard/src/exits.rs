//! The exit codes of a guard.

use console::ProgramExit;

/// The ways in which `status` ends, in the words of the manual page and of docs/guard.md. A monitor reads them.
pub(crate) const STATUS_ENDINGS: [(ProgramExit, &str); 6] = [
    (
        ProgramExit::Done,
        "covered: commits wait for as many standbys as asked for, these confirm, no window is open, and a guard runs",
    ),
    (
        ProgramExit::Exposed,
        "exposed: a window is open, the setting in force is weaker than asked for, or commits wait for no standby",
    ),
    (
        ProgramExit::Unreachable,
        "unreachable: the server does not answer, or the status cannot be read",
    ),
    (ProgramExit::Stalled, "stalled: too few standbys confirm, so that commits hang"),
    (ProgramExit::Unguarded, "unguarded: as 0, but no guard runs"),
    (ProgramExit::Standby, "standby: the server has no commits of its own"),
];

/// The ways in which a guard that runs ends.
pub(crate) const RUN_ENDINGS: [(ProgramExit, &str); 3] = [
    (ProgramExit::Done, "it was told to end"),
    (ProgramExit::CouldNotStart, "it could not start"),
    (ProgramExit::Incomplete, "it has guarded, and cannot go on"),
];

/// A table of exit codes for a help text.
pub(crate) fn table(endings: &[(ProgramExit, &str)]) -> String {
    let row =
        |(exit, meaning): &(ProgramExit, &str)| format!("  {:<3}  {meaning}\n", exit.number());
    endings.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_tables() {
        let page = include_str!("../../../docs/guard.md");
        let row =
            |(exit, meaning): (ProgramExit, &str)| format!("| {} | {meaning} |\n", exit.number());
        let rows = STATUS_ENDINGS.map(row).concat();
        assert!(page.contains(&rows), "the page lacks\n{rows}");
    }
}
