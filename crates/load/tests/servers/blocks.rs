//! Two sides of a comparison that are loaded in turn, their connections kept open.

use load::{
    BlockSchedule, LoadLimit, LoadPlan, LoadScript, Pace, Protocol, ScheduledBlock, ScriptSyntax,
    WarmUp,
};

use crate::support::{Server, plan, run, workload};

/// Which side has each block, and the number of what it draws.
const ORDER: [(usize, u64); 8] = [(0, 1), (1, 1), (1, 2), (0, 2), (1, 3), (0, 3), (0, 4), (1, 4)];

/// Two workloads in turn, in blocks of 250 ms.
fn in_turn(a: load::ClientGroup, b: load::ClientGroup) -> LoadPlan {
    let turn = |(side, draws)| ScheduledBlock { side, draws };
    let mut plan = plan(a, LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms: 8 * 250 });
    plan.workloads.push(b);
    plan.interval_ms = 250;
    plan.blocks = Some(BlockSchedule {
        length_ms: 250,
        rest_ms: 50,
        sides: vec![0, 1],
        order: ORDER.map(turn).to_vec(),
    });
    plan
}

/// Clients of a workload whose transactions note when they began, and a number that they drew.
fn side(server: &Server, table: &str) -> load::ClientGroup {
    let script = format!(
        "\\set drawn random(1, 1000000)\nINSERT INTO {table} VALUES (:client_id, :drawn);\n"
    );
    load::ClientGroup { protocol: Protocol::Prepared, ..workload(&server.conninfo(), &script, 3) }
}

#[test]
fn one_side_runs_at_a_time_and_each_block_is_an_interval() {
    let server = Server::start(&[]);
    let at = "at timestamptz DEFAULT now(), n bigserial";
    server.execute(&format!(
        "CREATE TABLE a (client int, drawn int, {at}); CREATE TABLE b (client int, drawn int, {at})"
    ));
    let outcome = run(&in_turn(side(&server, "a"), side(&server, "b"))).unwrap();

    let runs = server.number(
        "SELECT count(*) FROM (
            SELECT side, lag(side) OVER (ORDER BY at) AS before
            FROM (SELECT 'a' AS side, at FROM a UNION ALL SELECT 'b', at FROM b) AS sides
         ) AS neighbours WHERE side IS DISTINCT FROM before",
    );
    assert_eq!(runs, 6, "sides alternate as ordered: a, bb, a, b, aa, b");
    for (index, (owner, _)) in ORDER.into_iter().enumerate() {
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
    let (a, b) = (server.number("SELECT count(*) FROM a"), server.number("SELECT count(*) FROM b"));
    let counts = |index: usize| outcome.workloads[index].counts_total.transactions;
    assert_eq!((counts(0), counts(1)), (a, b));
}

#[test]
fn a_rate_is_that_of_a_sides_own_blocks_and_its_turns_do_not_count_as_waiting() {
    let server = Server::start(&[]);
    server
        .execute("CREATE TABLE a (client int, drawn int); CREATE TABLE b (client int, drawn int)");
    let paced = |table| load::ClientGroup { pace: Pace::Constant(200.0), ..side(&server, table) };
    let outcome = run(&in_turn(paced("a"), paced("b"))).unwrap();

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
        let is_own = ORDER.get(block as usize).is_some_and(|(owner, _)| *owner == cell.workload);
        let strayed = if is_own { 0 } else { cell.counts.transactions };
        assert!(strayed <= 3, "block {block}: {strayed} of side {}", cell.workload);
    }
}

/// Three scripts, so that their order is drawn as well. A transaction begins with this.
fn several(server: &Server, table: &str, first: &str) -> load::ClientGroup {
    let script = |kind: u32| LoadScript {
        name: format!("{table}{kind}"),
        text: format!(
            "{first}\\set drawn random(1, 1000000)\nINSERT INTO {table} VALUES ({kind}, :drawn);\n"
        ),
        weight: 1,
        syntax: ScriptSyntax::Current,
    };
    load::ClientGroup { clients: 1, scripts: (0..3).map(script).collect(), ..side(server, table) }
}

#[test]
fn both_sides_draw_the_same_numbers_in_the_blocks_of_a_pair() {
    // A machine that stands still for a block ends a transaction in a block that is not its own.
    let mut runs = (0..3).map(|_| draws_the_same_numbers());
    let first = runs.next().unwrap();
    assert!(first.is_ok() || runs.any(|run| run.is_ok()), "{first:?}");
}

fn draws_the_same_numbers() -> Result<(), String> {
    let server = Server::start(&[]);
    let columns = "kind int, drawn int, n bigserial";
    server.execute(&format!("CREATE TABLE a ({columns}); CREATE TABLE b ({columns})"));
    // B does less in each block.
    let (a, b) = (several(&server, "a", ""), several(&server, "b", "\\sleep 2 ms\n"));
    let outcome = run(&in_turn(a, b)).unwrap();

    let all = ["a", "b"].map(|table| {
        let sql = format!("SELECT string_agg(kind || ':' || drawn, ' ' ORDER BY n) FROM {table}");
        server.value(&sql)
    });
    let mut rows = all.each_ref().map(|text| text.split(' '));
    let mut blocks: [Vec<Vec<&str>>; 2] = Default::default();
    let open = outcome.window.unwrap().open.0;
    for cell in outcome.intervals.iter().filter(|cell| cell.start.0 >= open) {
        let side = &mut blocks[cell.workload];
        let index = ((cell.start.0 - open) / 250_000_000) as usize;
        if ORDER.get(index).is_some_and(|(owner, _)| *owner == cell.workload) {
            side.push(Vec::new());
        }
        // What ends late belongs to the block before.
        let Some(block) = side.last_mut() else { continue };
        block.extend(rows[cell.workload].by_ref().take(cell.counts.transactions as usize));
    }
    let [a, b] = &blocks;
    for (pair, (a, b)) in a.iter().zip(b).enumerate() {
        if b.len() <= 5 || a.len() <= b.len() {
            return Err(format!("{} and {} in pair {pair}", a.len(), b.len()));
        }
        if a[..b.len()] != b[..] {
            return Err(format!("pair {pair}: {a:?} and {b:?}"));
        }
    }
    if a[0][..5] == a[1][..5] {
        return Err(format!("two pairs draw {:?}", &a[0][..5]));
    }
    Ok(())
}
