//! pgbench's own scripts, by name.

use crate::complaint::Complaint;

/// One of pgbench's own scripts.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in output.
    pub description: &'static str,
    /// The script.
    pub text: &'static str,
}

/// All of them, in pgbench's order.
pub(crate) const BUILTINS: [Builtin; 3] = [
    Builtin { name: "tpcb-like", description: "<builtin: TPC-B (sort of)>", text: "" },
    Builtin { name: "simple-update", description: "<builtin: simple update>", text: "" },
    Builtin { name: "select-only", description: "<builtin: select only>", text: "" },
];

/// The one whose name begins with `prefix`.
///
/// # Errors
/// When none or several do; the complaint lists them all.
pub(crate) fn find(prefix: &str) -> Result<&'static Builtin, Complaint> {
    let found: Vec<_> = BUILTINS.iter().filter(|one| one.name.starts_with(prefix)).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(Complaint::error(format_args!("no builtin script found for name \"{prefix}\""))
            .with_bare(list())),
        _ => Err(Complaint::error(format_args!(
            "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"",
            found.len()
        ))
        .with_bare(list())),
    }
}

/// pgbench's list of them, which ends in an empty line.
#[must_use]
pub(crate) fn list() -> String {
    let lines = BUILTINS.iter().map(|one| format!("  {:>13}: {}\n", one.name, one.description));
    format!("Available builtin scripts:\n{}", lines.collect::<String>())
}
