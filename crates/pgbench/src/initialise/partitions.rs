//! The partitions of pgbench_accounts, as the server's catalogue has them.
//!
//! What `--partitions` says now need not be what it said when the tables were created.

use crate::complaint::Complaint;
use crate::server::Server;

use super::names::Names;
use super::outlet::Outlet;

/// Accounts with consecutive numbers, and the table that they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) table: String,
    pub(super) first: u64,
    pub(super) count: u64,
}

/// The partitions, if there are any and each has storage of its own.
pub(super) fn tables(names: &Names, server: &mut Server) -> Result<Option<Vec<String>>, Complaint> {
    // The list of a table without partitions is NULL.
    let listed = server.value(&list(names))?.unwrap_or_default();
    Ok(read(&listed).map(|found| found.into_iter().map(|one| one.table.to_owned()).collect()))
}

/// Share of each partition in so many accounts, if each can be loaded by itself: that takes
/// partitions by range that leave no account out.
pub(super) fn shares(
    names: &Names,
    outlet: &mut Outlet<'_>,
    accounts: u64,
) -> Result<Option<Vec<Share>>, Complaint> {
    let Outlet::Server(server) = outlet else { return Ok(None) };
    let key = format!("select pg_catalog.pg_get_partkeydef({})", names.oid("accounts"));
    if server.value(&key)?.as_deref() != Some("RANGE (aid)") {
        return Ok(None);
    }
    // The list of a table without partitions is NULL.
    let listed = server.value(&list(names))?.unwrap_or_default();
    Ok(read(&listed).and_then(|found| divide(&found, accounts)))
}

/// Kind, bound and name of each partition: a line for each, tabs between them.
fn list(names: &Names) -> String {
    format!(
        "select pg_catalog.string_agg(pg_catalog.concat_ws(E'\\t', relkind, \
         pg_catalog.pg_get_expr(relpartbound, oid), oid::pg_catalog.regclass), E'\\n' order by oid) \
         from pg_catalog.pg_class where relispartition and oid in \
         (select inhrelid from pg_catalog.pg_inherits where inhparent = {})",
        names.oid("accounts")
    )
}

/// One line of the list.
#[derive(Debug, PartialEq, Eq)]
struct PartitionLine<'a> {
    bound: &'a str,
    table: &'a str,
}

impl<'a> PartitionLine<'a> {
    /// A line, if it is that of an ordinary table.
    fn read(line: &'a str) -> Option<PartitionLine<'a>> {
        let (bound, table) = line.strip_prefix("r\t")?.split_once('\t')?;
        Some(PartitionLine { bound, table })
    }
}

/// The partitions of a list; none if there are none, or if one is no ordinary table.
fn read(listed: &str) -> Option<Vec<PartitionLine<'_>>> {
    if listed.is_empty() {
        return None;
    }
    listed.split('\n').map(PartitionLine::read).collect()
}

/// Ranges of the accounts 1 to `accounts` in the partitions by range, in order; none if an account
/// is in no partition.
fn divide(found: &[PartitionLine<'_>], accounts: u64) -> Option<Vec<Share>> {
    let ranges = found.iter().map(|one| Some((range(one.bound)?, one.table)));
    let mut ranges = ranges.collect::<Option<Vec<_>>>()?;
    ranges.sort_by_key(|((from, _), _)| *from);
    let mut shares = Vec::new();
    let mut next = 1;
    for ((from, to), table) in ranges {
        if next > accounts {
            break;
        }
        if i128::from(next) < from {
            return None;
        }
        let end = to.min(i128::from(accounts) + 1);
        // A partition that ends before the next account has none of them.
        let count = u64::try_from(end - i128::from(next)).unwrap_or(0);
        if count > 0 {
            shares.push(Share { table: table.to_owned(), first: next, count });
            next += count;
        }
    }
    (next > accounts).then_some(shares)
}

/// The first number of a range, and the one after its last.
fn range(bound: &str) -> Option<(i128, i128)> {
    let (from, to) = bound.strip_prefix("FOR VALUES FROM (")?.split_once(") TO (")?;
    let number = |text: &str, unbounded: &str, extreme: i128| match text {
        text if text == unbounded => Some(extreme),
        text => text.trim_matches('\'').parse().ok(),
    };
    let from = number(from, "MINVALUE", i128::MIN)?;
    Some((from, number(to.strip_suffix(')')?, "MAXVALUE", i128::MAX)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_divided_by_the_bounds() {
        let check = |listed: &str, accounts: u64, expected: Option<&[(&str, u64, u64)]>| {
            let shares = read(listed).and_then(|found| divide(&found, accounts));
            let shares: Option<Vec<_>> = shares.as_ref().map(|shares| {
                shares.iter().map(|one| (one.table.as_str(), one.first, one.count)).collect()
            });
            assert_eq!(shares.as_deref(), expected, "{listed}");
        };
        let three = "r\tFOR VALUES FROM (MINVALUE) TO (66668)\ta_1\n\
                     r\tFOR VALUES FROM (133335) TO (MAXVALUE)\ta_3\n\
                     r\tFOR VALUES FROM ('66668') TO ('133335')\ts.\"a\t2\"";
        let shares: &[_] = &[("a_1", 1, 66_667), ("s.\"a\t2\"", 66_668, 66_667)];
        check(three, 133_334, Some(shares));
        let shares = [shares, &[("a_3", 133_335, 66_666)]].concat();
        check(three, 200_000, Some(&shares));
        // Numbers that no account has.
        let below = "r\tFOR VALUES FROM ('-5') TO (0)\tb\n\
                     r\tFOR VALUES FROM (0) TO (MAXVALUE)\tc";
        check(below, 10, Some(&[("c", 1, 10)]));
        for unfit in [
            "",
            "r\tDEFAULT\ta",
            "r\tFOR VALUES WITH (modulus 2, remainder 0)\ta",
            "r\tFOR VALUES FROM (MINVALUE) TO (5)\ta",
            "r\tFOR VALUES FROM (2) TO (MAXVALUE)\ta",
            "r\tFOR VALUES FROM (MINVALUE) TO (5)\ta\nr\tFOR VALUES FROM (6) TO (MAXVALUE)\tb",
            "f\tFOR VALUES FROM (MINVALUE) TO (MAXVALUE)\ta",
            "r\tFOR VALUES FROM (MINVALUE, 1) TO (MAXVALUE, 2)\ta",
            "r\tFOR VALUES FROM (MINVALUE) TO (MAXVALUE)\ta\nb",
        ] {
            check(unfit, 10, None);
        }
    }
}
