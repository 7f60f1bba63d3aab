//! Names of pgbench's tables in statements of the initialisation.

use server::quote::identifier;

/// Prefix of the name of a table: nothing, as pgbench has it, or a schema.
///
/// With a schema, nothing that a search path would find can be meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    /// Names in a schema; none for what the search path says.
    pub(crate) fn in_schema(schema: Option<&str>) -> Names {
        let prefix = schema.map(|schema| format!("{}.", identifier(schema)));
        // Without a schema, names have no prefix, and the search path decides.
        Names { prefix: prefix.unwrap_or_default() }
    }

    /// A table's name as a statement has it: `branches` is `pgbench_branches`.
    pub(super) fn table(&self, name: &str) -> String {
        format!("{}pgbench_{name}", self.prefix)
    }

    /// An expression for a table's oid; null where there is no such table.
    pub(super) fn oid(&self, name: &str) -> String {
        format!("to_regclass('{}')", self.table(name).replace('\'', "''"))
    }

    /// Several, with commas between them.
    pub(super) fn tables(&self, names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| self.table(name)).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_stands_before_every_name() {
        let check = |schema, expected| {
            assert_eq!(Names::in_schema(schema).tables(&["accounts", "history"]), expected);
        };
        check(None, "pgbench_accounts, pgbench_history");
        check(Some("pg\"rig"), "\"pg\"\"rig\".pgbench_accounts, \"pg\"\"rig\".pgbench_history");
    }
}
