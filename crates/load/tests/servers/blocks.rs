//! Two sides of a comparison that are loaded in turn, their connections kept open.

use load::{Blocks, Limit, Pace, Protocol, WarmUp};

use crate::support::{Server, plan, run, workload};

/// Clients of a workload whose transactions note when they began, and a number that they drew.
fn side(server: &Server, table: &str) -> load::Workload {
    let script = format!(
        "\\set drawn random(1, 1000000)\nINSERT INTO {table} VALUES (:client_id, :drawn);\n"
    );
    load::Workload { protocol: Protocol::Prepared, ..workload(&server.conninfo(), &script, 3) }
}

#[test]
fn one_side_runs_at_a_time_and_each_block_is_an_interval() {
    let server = Server::start(&[]);
    let at = "at timestamptz DEFAULT now(), n bigserial";
    server.execute(&format!(
        "CREATE TABLE a (client int, drawn int, {at}); CREATE TABLE b (client int, drawn int, {at})"
    ));
    let order = [0, 1, 1, 0, 1, 0, 0, 1];
    let mut plan = plan(side(&server, "a"), Limit::Transactions(1));
    plan.workloads.push(side(&server, "b"));
    plan.limit = Limit::Time { warm_up: WarmUp::Fixed(0), window_ms: 8 * 250 };
    plan.interval_ms = 250;
    plan.blocks = Some(Blocks { length_ms: 250, rest_ms: 50, order: order.to_vec() });
    let outcome = run(&plan).unwrap();

    let runs = server.number(
        "SELECT count(*) FROM (
            SELECT side, lag(side) OVER (ORDER BY at) AS before
            FROM (SELECT 'a' AS side, at FROM a UNION ALL SELECT 'b', at FROM b) AS sides
         ) AS neighbours WHERE side IS DISTINCT FROM before",
    );
    assert_eq!(runs, 6, "sides alternate as ordered: a, bb, a, b, aa, b");
    for (index, owner) in order.into_iter().enumerate() {
        let start = outcome.window.unwrap().open.0 + index as u64 * 250_000_000;
        let cells = outcome.intervals.iter().filter(|cell| cell.start.0 == start);
        for cell in cells {
            let transactions = cell.counts.transactions;
            match cell.workload == owner {
                true => assert!(transactions > 0, "block {index}"),
                false => assert!(transactions <= 3, "block {index}: {transactions} strayed"),
            }
        }
    }
    let differ = "SELECT count(*) FROM
        (SELECT client, drawn, row_number() OVER (PARTITION BY client ORDER BY n) AS i FROM a) AS a
        JOIN (SELECT client, drawn, row_number() OVER (PARTITION BY client ORDER BY n) AS i FROM b)
            AS b ON b.i = a.i AND b.client = a.client + 3 WHERE a.drawn <> b.drawn";
    assert_eq!(server.number(differ), 0, "both sides draw the same numbers");
    let (a, b) = (server.number("SELECT count(*) FROM a"), server.number("SELECT count(*) FROM b"));
    let counts = |index: usize| outcome.workloads[index].counts_total.transactions;
    assert_eq!((counts(0), counts(1)), (a, b));
}

#[test]
fn a_rate_is_that_of_a_sides_own_blocks_and_its_turns_do_not_count_as_waiting() {
    let server = Server::start(&[]);
    server
        .execute("CREATE TABLE a (client int, drawn int); CREATE TABLE b (client int, drawn int)");
    let paced = |table| load::Workload { pace: Pace::Constant(200.0), ..side(&server, table) };
    let mut plan = plan(paced("a"), Limit::Transactions(1));
    plan.workloads.push(paced("b"));
    plan.limit = Limit::Time { warm_up: WarmUp::Fixed(0), window_ms: 8 * 250 };
    plan.interval_ms = 250;
    let order = vec![0, 1, 1, 0, 1, 0, 0, 1];
    plan.blocks = Some(Blocks { length_ms: 250, rest_ms: 50, order: order.clone() });
    let outcome = run(&plan).unwrap();

    for (index, result) in outcome.workloads.iter().enumerate() {
        // Four blocks of 200 ms, a slot each 5 ms.
        let done = result.counts_total.transactions;
        assert!((150..=160).contains(&done), "side {index} did {done} of 160");
        // A slot that had waited for the other side's blocks would be 250 ms late.
        let late = result.lag.quantile_ns(0.5).expect("slots");
        assert!(late < 50_000_000, "side {index}: half of the slots were {late} ns late");
    }
    for cell in &outcome.intervals {
        let block = (cell.start.0 - outcome.window.unwrap().open.0) / 250_000_000;
        let is_own = order.get(block as usize) == Some(&cell.workload);
        let strayed = if is_own { 0 } else { cell.counts.transactions };
        assert!(strayed <= 3, "block {block}: {strayed} of side {}", cell.workload);
    }
}
