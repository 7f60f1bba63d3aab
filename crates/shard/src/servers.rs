//! The PL/Proxy cluster by SQL/MED: a foreign server whose options are the partitions.
//!
//! A node's number is its partition's. PL/Proxy wants a power of two of them, so those that no
//! node has repeat the nodes that there are; PL/Proxy keeps one connection for equal strings, and
//! asks each once when all are asked.

use std::collections::BTreeMap;

use crate::routines::SERVER;
use crate::text::literal;

/// The partitions' connection strings, by partition.
pub(crate) fn partitions(routes: &BTreeMap<i32, String>) -> Vec<String> {
    let Some(last) = routes.keys().max() else { return Vec::new() };
    let count = usize::try_from(last + 1).unwrap_or(0).next_power_of_two();
    let mut others = routes.values().cycle();
    let slots = (0..).take(count).map(|slot| routes.get(&slot).or_else(|| others.next()));
    slots.flatten().cloned().collect()
}

/// SQL that makes the server, or gives it other partitions than the `old` ones that it has.
pub(crate) fn define(old: Option<usize>, partitions: &[String]) -> String {
    let option = |verb: &str, slot: usize| format!("{verb} p{slot} {}", literal(&partitions[slot]));
    let Some(old) = old else {
        let options: Vec<String> = (0..partitions.len()).map(|slot| option("", slot)).collect();
        return format!(
            "CREATE SERVER {SERVER} FOREIGN DATA WRAPPER plproxy OPTIONS ({});\n\
             CREATE USER MAPPING FOR PUBLIC SERVER {SERVER};\n",
            options.join(", ")
        );
    };
    let kept = (0..partitions.len().min(old)).map(|slot| option("SET", slot));
    let added = (old..partitions.len()).map(|slot| option("ADD", slot));
    let dropped = (partitions.len()..old).map(|slot| format!("DROP p{slot}"));
    let options: Vec<String> = kept.chain(added).chain(dropped).collect();
    format!("ALTER SERVER {SERVER} OPTIONS ({});\n", options.join(", "))
}

/// How many partitions the server has; no row where there is no server.
pub(crate) const PARTITIONS: &str = "
    SELECT count(*) FILTER (WHERE option ~ '^p[0-9]+=')
    FROM pg_foreign_server, unnest(srvoptions) AS option
    WHERE srvname = 'pgrig_shard'
    HAVING count(*) > 0";

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(numbers: &[i32]) -> BTreeMap<i32, String> {
        numbers.iter().map(|number| (*number, format!("n{number}"))).collect()
    }

    #[test]
    fn partitions_are_a_power_of_two_and_every_node_has_its_own() {
        let check = |numbers: &[i32], expected: &str| {
            assert_eq!(partitions(&routes(numbers)).join(" "), expected);
        };
        check(&[0], "n0");
        check(&[0, 1, 2], "n0 n1 n2 n0");
        check(&[0, 2], "n0 n0 n2 n2");
        check(&[1], "n1 n1");
        check(&[0, 1, 2, 3, 4], "n0 n1 n2 n3 n4 n0 n1 n2");
    }

    #[test]
    fn the_server_is_altered_in_one_statement() {
        let three = partitions(&routes(&[0, 1, 2]));
        let made = define(None, &three);
        assert!(made.contains("OPTIONS ( p0 'n0',  p1 'n1',  p2 'n2',  p3 'n0')"), "{made}");
        let sql = define(Some(2), &three);
        assert_eq!(
            sql,
            "ALTER SERVER pgrig_shard OPTIONS (SET p0 'n0', SET p1 'n1', ADD p2 'n2', ADD p3 'n0');\n"
        );
        let sql = define(Some(4), &three[..2]);
        assert!(sql.ends_with("(SET p0 'n0', SET p1 'n1', DROP p2, DROP p3);\n"), "{sql}");
    }
}
