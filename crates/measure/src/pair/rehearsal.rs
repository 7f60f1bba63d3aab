//! The rehearsal: before the load, both sides run the same transactions one after another, from the same data. Every
//! answer must be the same, and so must the rows that were changed.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use load::{
    ClientGroup, LaneFleet, LoadControl, LoadEvent, LoadLimit, LoadOutcome, LoadPlan, LoadScript,
    Pace, ScriptOutcome, StopUrgency, WarmUp, WorkRecord,
};
use record::comparison::{ServerRenewal, WorkComparison};
use server::Client;
use server::quote::{identifier, literal};

use crate::loading::PreparedLoad;
use crate::pair::contest::{ComparedSide, PairContest};
use crate::pair::error::PairError;
use crate::pair::work::{
    ChangedTable, ScriptRehearsal, StatementTexts, compare_answers, compare_tables,
    has_same_scripts, varying,
};

/// Share of a contest's time for which A rehearses, within bounds.
const SHARE: f64 = 0.025;
const LEAST_MS: u64 = 500;
const MOST_MS: u64 = 3_000;

/// B may take so many times as long as A, and at least so long, for the same transactions.
const SLOWER: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Changed tables that are compared.
const TABLES_MAX: i64 = 200;

/// Changed rows are not looked for in larger tables, where all rows would have to be read.
const BYTES_MAX: i64 = 4 << 30;

impl PairContest<'_> {
    /// Rehearses the workloads of both sides, and compares what they did, where both still hold the same data.
    ///
    /// # Errors
    /// If a side cannot be loaded, or the user interrupts it.
    pub(crate) fn rehearse(&mut self, is_same: bool) -> Result<(), PairError> {
        let mut rehearsal = ScriptRehearsal::default();
        let (found, written) = self.rehearsed(is_same, &mut rehearsal)?;
        (self.rehearsal, self.work, self.written) = (rehearsal, found, written);
        Ok(())
    }

    /// What was found, and the tables that each side has changed.
    fn rehearsed(
        &self,
        is_same: bool,
        rehearsal: &mut ScriptRehearsal,
    ) -> Result<(WorkComparison, [Vec<String>; 2]), PairError> {
        let mut found = WorkComparison::default();
        let mut written = [Vec::new(), Vec::new()];
        if !has_same_scripts(&self.workloads) {
            found.not_judged.push(
                "the scripts of the sides differ: what their statements did is not compared"
                    .to_owned(),
            );
            return Ok((found, written));
        }
        if self.arena.renewal() == ServerRenewal::Shared {
            found.not_judged.push(
                "both sides are one database: what their statements did is not compared".to_owned(),
            );
            return Ok((found, written));
        }
        if !is_same {
            found.not_judged.push(
                "a script that fails or does not end on B has changed A: what the others do is not compared one by one"
                    .to_owned(),
            );
            return Ok((found, written));
        }
        let texts = StatementTexts::of(&self.workloads[0]);
        let before = self.marks();
        let mut is_whole = true;
        for workload in 0..self.workloads[0].len() {
            let began = Instant::now();
            let a = self.rehearse_side(0, workload, None, None)?;
            let transactions = transactions(&a);
            if transactions == 0 {
                is_whole = false;
                let name = &self.workloads[0][workload].name;
                let why = format!("no transaction of {name} ended in a rehearsal");
                found.not_judged.push(why);
                continue;
            }
            let limit = (began.elapsed() * SLOWER).max(PATIENCE);
            let b = self.rehearse_side(1, workload, Some(transactions), Some(limit))?;
            if workload == 0 {
                let ms = |one: &ScriptOutcome| one.latency.mean_ns().map(|ns| ns / 1e6);
                let both = a.scripts[0].iter().zip(&b.scripts[0]);
                rehearsal.mean_ms = both.map(|(a, b)| [ms(a), ms(b)]).collect();
            }
            is_whole &= a.workloads[0].unknown == 0 && b.workloads[0].unknown == 0;
            is_whole &= self::transactions(&b) == transactions;
            found.rehearsed += transactions.min(self::transactions(&b));
            let answers = [&a, &b].map(|outcome| &outcome.work[0].answers[..]);
            let seen = answers.map(<[_]>::len);
            // What one side had no time for says nothing.
            let both = seen[0].min(seen[1]);
            let answers = answers.map(|all| if is_whole { all } else { &all[..both] });
            let other = compare_answers(workload, &texts, answers, &mut found);
            if workload == 0 {
                rehearsal.differences = other;
            }
        }
        match (before, is_whole) {
            (Some(before), true) => written = self.compare_changes(before, &mut found),
            _ => found.not_judged.push("the tables after a rehearsal were not compared".to_owned()),
        }
        Ok((found, written))
    }

    /// Runs one client of a workload: A for a while, B for as many transactions.
    fn rehearse_side(
        &self,
        side: usize,
        workload: usize,
        transactions: Option<u64>,
        within: Option<Duration>,
    ) -> Result<LoadOutcome, PairError> {
        let scripts = self.workloads[side][workload].scripts.iter();
        let workload = ClientGroup {
            clients: 1,
            pace: Pace::Closed,
            latency_limit_us: None,
            // Rare scripts are rehearsed as well.
            scripts: scripts
                .map(|one| LoadScript { weight: one.weight.min(1), ..one.clone() })
                .collect(),
            ..self.workloads[side][workload].clone()
        };
        let window_ms = (self.max_time.as_secs_f64() * 1e3 * SHARE) as u64;
        let window_ms = window_ms.clamp(LEAST_MS, MOST_MS) / self.workloads[side].len() as u64;
        let limit = transactions.map_or(
            LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms: window_ms.max(LEAST_MS / 5) },
            LoadLimit::Transactions,
        );
        let plan = LoadPlan {
            limit,
            lanes: 1,
            work: WorkRecord::Answers,
            ..self.plan(vec![workload], TICK_MS)
        };
        let (own, began) = (LoadControl::new(), Instant::now());
        let mut watch = |_: &LoadEvent<'_>| {
            let is_over = within.is_some_and(|within| began.elapsed() > within);
            if is_over || self.control.urgency() != StopUrgency::None {
                own.interrupt();
            }
        };
        let load = PreparedLoad::new(&plan, began, Vec::new());
        let measured = load.run(LaneFleet::Threads, &own, &mut [&mut watch]);
        if self.control.urgency() != StopUrgency::None {
            return Err(PairError::Interrupted { doing: "loading the servers" });
        }
        let name = || self.arena.sides()[side].name().to_owned();
        let measured = measured
            .map_err(|source| PairError::Load { side: name(), source: Box::new(source) })?;
        let counts = &measured.outcome.workloads[0].counts_total;
        if counts.transactions == 0 && counts.aborted_clients > 0 {
            let why = measured.messages.first.into_iter().next();
            let why = why.unwrap_or_else(|| "it gave no answer".to_owned());
            return Err(self.failing(side, &measured.outcome, why));
        }
        Ok(measured.outcome)
    }

    /// What both servers have counted so far; none where one cannot be asked.
    fn marks(&self) -> Option<[ChangeMark; 2]> {
        let [a, b] = self.arena.sides().map(ChangeMark::of);
        Some([a?, b?])
    }

    /// Compares the rows that both servers have changed since the marks. Returns the names of their tables.
    fn compare_changes(
        &self,
        marks: [ChangeMark; 2],
        found: &mut WorkComparison,
    ) -> [Vec<String>; 2] {
        let sides = self.arena.sides();
        let [a, b] = thread::scope(|scope| {
            let reading = [0, 1].map(|side| {
                let mark = &marks[side];
                scope.spawn(move || mark.changed(sides[side]))
            });
            reading.map(|one| one.join().unwrap_or_else(|it| std::panic::resume_unwind(it)))
        });
        match (a, b) {
            (Ok(a), Ok(b)) => {
                let short = [&a, &b].map(|tables| {
                    tables.iter().map(|(name, table)| (short(name).to_owned(), table.clone()))
                });
                let [a_short, b_short] = short.map(Iterator::collect);
                compare_tables([&a_short, &b_short], found);
                [a, b].map(|tables| tables.into_keys().collect())
            }
            (Err(error), _) | (_, Err(error)) => {
                found.not_judged.push(format!("the tables after a rehearsal: {error}"));
                [Vec::new(), Vec::new()]
            }
        }
    }

    /// The rows of the tables that each side has changed in its rehearsal; none where one cannot be counted.
    pub(crate) fn row_counts(&self) -> Option<[i64; 2]> {
        let sides = self.arena.sides();
        let count = |side: usize| {
            let tables = &self.written[side];
            let mut client = sides[side].connect().ok()?;
            let rows = tables.iter().map(|table| -> Option<i64> {
                let count = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]);
                Some(count.ok()?.get(0))
            });
            rows.sum::<Option<i64>>()
        };
        Some([count(0)?, count(1)?])
    }
}

/// The length of an interval: how soon a side that takes too long is ended.
const TICK_MS: u64 = 250;

/// Transactions of a rehearsal that ended, in whatever way.
fn transactions(outcome: &LoadOutcome) -> u64 {
    let counts = &outcome.workloads[0].counts_total;
    counts.transactions + counts.failed()
}

/// A moment in the life of a server, from which on changed rows are told apart.
struct ChangeMark {
    /// The transaction that the server began then.
    xid: String,
    /// The changes until then, by table.
    changes: BTreeMap<String, TableChanges>,
}

/// What a server has counted of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableChanges {
    /// Rows inserted, updated and deleted.
    changed: i64,
    /// Rows inserted, less rows deleted.
    grown: i64,
}

impl ChangeMark {
    fn of(side: &dyn ComparedSide) -> Option<ChangeMark> {
        let mut client = side.connect().ok()?;
        let xid = client.query_one("SELECT pg_current_xact_id()::xid::text", &[]).ok()?.get(0);
        let changes = changes(&mut client).ok()?;
        Some(ChangeMark { xid, changes })
    }

    /// The tables that were changed since then, with their changed rows.
    fn changed(
        &self,
        side: &dyn ComparedSide,
    ) -> Result<BTreeMap<String, ChangedTable>, PairError> {
        let mut client = side.connect()?;
        let failed = |source| PairError::failed(side.name(), CHANGES, source);
        // Statistics of the session that has just ended come soon after it.
        let mut now = changes(&mut client).map_err(failed)?;
        loop {
            thread::sleep(SETTLE);
            let again = changes(&mut client).map_err(failed)?;
            if again == now {
                break;
            }
            now = again;
        }
        let is_changed =
            |(name, counted): &(&String, &TableChanges)| self.changes.get(*name) != Some(*counted);
        let mut tables = BTreeMap::new();
        for (name, counted) in now.iter().filter(is_changed) {
            // A table that was not there then had grown by nothing.
            let before = self.changes.get(name).map_or(0, |changes| changes.grown);
            let grown = counted.grown - before;
            tables.insert(name.clone(), self.read(&mut client, side, name, grown)?);
        }
        Ok(tables)
    }

    /// One table: its rows that are newer than the mark are summed up.
    fn read(
        &self,
        client: &mut Client,
        side: &dyn ComparedSide,
        table: &str,
        grown: i64,
    ) -> Result<ChangedTable, PairError> {
        let failed = |text: &str, source| PairError::failed(side.name(), text, source);
        let list = COLUMNS.replace("$1", &literal(table));
        let rows = client.query(&list, &[]).map_err(|source| failed(&list, source))?;
        let (mut names, mut varying_columns) = (Vec::new(), BTreeMap::new());
        for row in rows {
            let (name, is_time, default): (String, bool, String) =
                (row.get(0), row.get(1), row.get(2));
            let why =
                if is_time { Some("it holds a time or a random value") } else { varying(&default) };
            if let Some(why) = why {
                varying_columns.insert(name.clone(), why);
            }
            names.push(name);
        }
        let is_new = format!("age(xmin) <= age({}::xid)", literal(&self.xid));
        let sums: String = names.iter().map(|name| format!(", {}", column_sum(name))).collect();
        let text = format!(
            "SELECT count(*) FILTER (WHERE is_new){sums} \
             FROM (SELECT {is_new} AS is_new, one FROM {table} AS one) AS row"
        );
        let row = client.query_one(&text, &[]).map_err(|source| failed(&text, source))?;
        let columns = names.into_iter().enumerate().map(|(at, name)| (name, row.get(at + 1)));
        Ok(ChangedTable {
            grown,
            changed: row.get(0),
            columns: columns.collect(),
            varying: varying_columns,
        })
    }
}

/// The time in which a server counts what a session did that has ended.
const SETTLE: Duration = Duration::from_millis(300);

/// The name of a table without the schema in which scripts find it.
fn short(name: &str) -> &str {
    ["public.", "pgrig."].iter().find_map(|schema| name.strip_prefix(schema)).unwrap_or(name)
}

/// The sum of 60 bits of the MD5 of each changed value of a column: the same whatever the order of rows.
fn column_sum(column: &str) -> String {
    let value = format!("coalesce((one).{}::text, '')", identifier(column));
    format!(
        "coalesce(sum(('x' || left(md5({value}), 15))::bit(60)::bigint) FILTER (WHERE is_new), 0)::text"
    )
}

/// Rows changed in each table that is small enough to be read, by table.
fn changes(client: &mut Client) -> Result<BTreeMap<String, TableChanges>, postgres::Error> {
    let rows = client.query(CHANGES, &[&BYTES_MAX, &TABLES_MAX])?;
    let of =
        |row: postgres::Row| (row.get(0), TableChanges { changed: row.get(1), grown: row.get(2) });
    Ok(rows.into_iter().map(of).collect())
}

const CHANGES: &str = "
    SELECT format('%I.%I', s.schemaname, s.relname), n_tup_ins + n_tup_upd + n_tup_del,
           n_tup_ins - n_tup_del
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    WHERE c.relpersistence <> 't' AND c.relkind = 'r' AND pg_table_size(c.oid) <= $1
    ORDER BY n_tup_ins + n_tup_upd + n_tup_del DESC LIMIT $2";

/// Columns of a table: the name, whether its type is one of moments or of random values, its default.
const COLUMNS: &str = "
    SELECT a.attname::text,
           t.typcategory IN ('D', 'T') OR t.typname = 'uuid',
           coalesce(pg_get_expr(d.adbin, d.adrelid), '')
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
    WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum";
