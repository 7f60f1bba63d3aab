//! The scripts that come with pgbench.

/// A built-in script.
#[derive(Debug, PartialEq, Eq)]
pub struct BuiltinScript {
    /// The name for `-b`.
    pub name: &'static str,
    /// The name in reports.
    pub description: &'static str,
    /// The script.
    pub text: &'static str,
}

/// A name that is no built-in script's, in pgbench's words. [`BuiltinScript::list`] belongs below it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BuiltinError {
    #[error("no builtin script found for name \"{0}\"")]
    Unknown(String),
    #[error("ambiguous builtin name: {found} builtin scripts found for prefix \"{prefix}\"")]
    Ambiguous { found: usize, prefix: String },
}

const TPCB_LIKE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, \
CURRENT_TIMESTAMP);
END;
";

const SIMPLE_UPDATE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, \
CURRENT_TIMESTAMP);
END;
";

const SELECT_ONLY: &str = "\
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

impl BuiltinScript {
    /// All of them; the first is what pgbench runs if none is chosen.
    pub const ALL: [BuiltinScript; 3] = [
        BuiltinScript {
            name: "tpcb-like",
            description: "<builtin: TPC-B (sort of)>",
            text: TPCB_LIKE,
        },
        BuiltinScript {
            name: "simple-update",
            description: "<builtin: simple update>",
            text: SIMPLE_UPDATE,
        },
        BuiltinScript {
            name: "select-only",
            description: "<builtin: select only>",
            text: SELECT_ONLY,
        },
    ];

    /// The script whose name begins with `prefix`.
    pub fn find(prefix: &str) -> Result<&'static BuiltinScript, BuiltinError> {
        static ALL: [BuiltinScript; 3] = BuiltinScript::ALL;
        let mut found = ALL.iter().filter(|builtin| builtin.name.starts_with(prefix));
        match (found.next(), found.count()) {
            (Some(builtin), 0) => Ok(builtin),
            (Some(_), more) => {
                Err(BuiltinError::Ambiguous { found: more + 1, prefix: prefix.to_owned() })
            }
            (None, _) => Err(BuiltinError::Unknown(prefix.to_owned())),
        }
    }

    /// Output of `-b list`: every name and description, and an empty line.
    pub fn list() -> String {
        let mut list = "Available builtin scripts:\n".to_owned();
        for BuiltinScript { name, description, .. } in BuiltinScript::ALL {
            list += &format!("  {name:>13}: {description}\n");
        }
        list + "\n"
    }

    /// Output of `--show-script`.
    pub fn show(&self) -> String {
        format!("-- {}: {}\n{}\n", self.name, self.description, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_prefix_is_enough() {
        assert_eq!(BuiltinScript::find("t").unwrap().name, "tpcb-like");
        assert_eq!(BuiltinScript::find("si").unwrap().name, "simple-update");
        assert_eq!(BuiltinScript::find("select-only").unwrap().name, "select-only");
        let message = |name| BuiltinScript::find(name).unwrap_err().to_string();
        assert_eq!(
            message("s"),
            "ambiguous builtin name: 2 builtin scripts found for prefix \"s\""
        );
        assert_eq!(message("x"), "no builtin script found for name \"x\"");
    }
}
