//! `pgrig verify`: two databases of the user's, compared without a change to them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::{Limits, LoadControl, StopUrgency};
use terms::{counted, duration, grouped, size};
use verify::{
    ComparedServer, LOCK_WAIT_S, ObjectComparison, PairMember, ServerPair, TableComparison,
    TableFilter, TableList,
};

use crate::arguments::VerifyArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal::{self, BAD, GOOD, styled};

/// Says what is read and locked, compares, and tells the differences.
pub(crate) fn verify(arguments: &VerifyArguments) -> Result<ProgramExit, Complaint> {
    let control = console::quietly_interrupted(|| {});
    compare(arguments, &control).map_err(|complaint| match control.urgency() {
        StopUrgency::None => complaint,
        _ => Complaint::new("interrupted; nothing is known of the two databases")
            .exit(ProgramExit::Interrupted),
    })
}

fn compare(arguments: &VerifyArguments, control: &LoadControl) -> Result<ProgramExit, Complaint> {
    let [(one, one_conninfo), (other, other_conninfo)] = arguments.target.as_slice() else {
        let what = format!(
            "{} given, and two are compared",
            counted(arguments.target.len() as u64, "database")
        );
        let hint = "write --target old=CONNINFO --target new=CONNINFO";
        return Err(Complaint::new(what).hinted(Some(hint)));
    };
    if one == other {
        let what = format!("both databases are called {one}");
        return Err(Complaint::new(what).hinted(Some("give each a name of its own")));
    }
    let extra = match &arguments.extra {
        None => None,
        Some(name) if name == one => Some(PairMember::One),
        Some(name) if name == other => Some(PairMember::Other),
        Some(name) => {
            let what = format!("--extra {name}: no --target has that name");
            return Err(Complaint::new(what).hinted(Some(format!("name {one} or {other}"))));
        }
    };
    let filter = TableFilter { tables: arguments.table.clone(), schemas: arguments.schema.clone() };
    let began = Instant::now();
    let one = begin(one, one_conninfo, control)?;
    let other = begin(other, other_conninfo, control)?;
    let places = [one.1, other.1];
    let mut pair = ServerPair::new([one.0, other.0])?;
    let tables = pair.tables(&filter)?;
    let estimated = pair.estimated(&tables)?;
    let plan = ComparisonPlan { places, tables, estimated };
    let lines = plan.lines(&pair);
    match arguments.dry_run && !arguments.json {
        true => lines.iter().for_each(terminal::result),
        false => lines.iter().for_each(terminal::narrate),
    }
    if arguments.dry_run {
        if arguments.json {
            terminal::json(&plan.json(&pair, None));
        }
        return Ok(ProgramExit::Done);
    }
    // Catalogs take a moment, and a sequence is read as close to the snapshot as can be.
    let objects = pair.objects(&filter)?;
    let rows = pair.rows(&plan.tables, extra, |table| {
        let shown = counted(table.rows[0], "row");
        terminal::narrate(format_args!("  {}: {shown}, {}", table.name, said_of(table)));
    })?;
    let found = Comparison { rows, objects, took: began.elapsed() };
    match arguments.json {
        true => terminal::json(&plan.json(&pair, Some(&found))),
        false => found.tell(&plan.tables),
    }
    Ok(match found.is_equal(&plan.tables) {
        true => ProgramExit::Done,
        false => ProgramExit::DoesNotHold,
    })
}

/// Begins to read a database; its place without a password.
fn begin(
    name: &str,
    conninfo: &str,
    control: &LoadControl,
) -> Result<(ComparedServer, String), Complaint> {
    let mut conninfo = server::resolve_conninfo(conninfo)
        .map_err(|error| Complaint::new(format_args!("{name}: {error}")).hinted(error.hint()))?;
    conninfo.set("application_name", "pgrig verify");
    // Rows are passed on, and no answer is kept.
    let limits = Limits { answer_bytes: u64::MAX, ..Limits::of_administration() };
    let client = server::connect(&conninfo, &limits.heard_by(control))
        .map_err(|error| Complaint::new(format_args!("{name}: {error}")).hinted(error.hint()))?;
    Ok((ComparedServer::begin(name, client)?, conninfo.place()))
}

/// What is to be read, and what that takes.
struct ComparisonPlan {
    /// Where each server is.
    places: [String; 2],
    tables: TableList,
    /// The time of one reading, where it can be told.
    estimated: Option<Duration>,
}

impl ComparisonPlan {
    fn lines(&self, pair: &ServerPair) -> Vec<String> {
        let mut lines = Vec::new();
        for (server, place) in pair.servers().iter().zip(&self.places) {
            let is = &server.is;
            let standby = if is.is_in_recovery { ", a standby" } else { "" };
            lines.push(format!(
                "{}: PostgreSQL {}, database {} on {place}, read as {}{standby}",
                server.name, is.version, is.database, is.role
            ));
            if is.is_subscriber {
                let name = &server.name;
                lines.push(format!(
                    "{name} gets changes by a subscription: what has not arrived yet counts as a difference"
                ));
            }
        }
        let names = pair.servers().each_ref().map(|server| server.name.as_str());
        let sizes = self.tables.bytes().map(size);
        lines.push(format!(
            "reads every row of {} ({} on {}, {} on {}) by SELECT, in one session and one snapshot on each; tables that \
             differ are read up to three times, and up to {} rows of each are sorted",
            counted(self.tables.both.len() as u64, "table"),
            sizes[0],
            names[0],
            sizes[1],
            names[1],
            grouped(verify::ROWS_SORTED_MAX),
        ));
        lines.push(format!(
            "locks these tables, their sequences and catalogs in ACCESS SHARE until it ends: ALTER TABLE, DROP and \
             TRUNCATE wait, and what comes behind them; it waits {LOCK_WAIT_S} s for a lock at most"
        ));
        lines.push(
            "holds the xmin of its snapshot until it ends: VACUUM on both keeps the rows that die meanwhile".to_owned(),
        );
        lines.push(match self.estimated {
            Some(time) if time < Duration::from_secs(1) => {
                "takes about a second, by a sample of the largest table".to_owned()
            }
            Some(time) => format!(
                "takes about {} for one reading, by a sample of the largest table",
                duration(time.as_secs_f64())
            ),
            None => {
                "takes a time that is not known: the largest table was never analyzed".to_owned()
            }
        });
        lines.extend(self.tables.left_out.iter().cloned());
        lines
    }

    fn json(&self, pair: &ServerPair, found: Option<&Comparison>) -> Value {
        let servers = pair.servers().iter().zip(&self.places).map(|(server, place)| {
            json!({
                "name": server.name,
                "place": place,
                "database": server.is.database,
                "role": server.is.role,
                "version": server.is.version,
                "is_in_recovery": server.is.is_in_recovery,
                "is_subscriber": server.is.is_subscriber,
            })
        });
        let verdict = found.map(|found| match found.is_equal(&self.tables) {
            true => "equal",
            false => "different",
        });
        let rows = found.map(|found| found.rows.as_slice());
        let named = |of: fn(&Comparison) -> &Vec<String>| found.map(of);
        json!({
            "verdict": verdict,
            "servers": servers.collect::<Vec<_>>(),
            "tables": self.tables.both.len(),
            "table_bytes": self.tables.bytes(),
            "estimated_s": self.estimated.map(|time| time.as_secs_f64()),
            "left_out": self.tables.left_out,
            "tables_unlike": self.tables.unlike,
            "rows": rows.map(|rows| rows.iter().map(of_table).collect::<Vec<_>>()),
            "objects_compared": found.map(|found| found.objects.compared),
            "objects_different": named(|found| &found.objects.different),
            "sequences_compared": found.map(|found| found.objects.sequences),
            "sequences_behind": named(|found| &found.objects.behind),
            "elapsed_s": found.map(|found| found.took.as_secs_f64()),
        })
    }
}

fn of_table(table: &TableComparison) -> Value {
    json!({
        "table": table.name,
        "bytes": table.bytes,
        "rows": table.rows,
        "different": table.different,
        "extra": table.extra,
        "is_at_least": table.is_at_least,
        "named": table.named,
    })
}

/// What was found.
struct Comparison {
    rows: Vec<TableComparison>,
    objects: ObjectComparison,
    took: Duration,
}

impl Comparison {
    fn rows_different(&self) -> u64 {
        self.rows.iter().map(|table| table.different).sum()
    }

    fn is_equal(&self, tables: &TableList) -> bool {
        let objects = &self.objects;
        self.rows_different() == 0
            && tables.unlike.is_empty()
            && objects.different.is_empty()
            && objects.behind.is_empty()
    }

    fn tell(&self, tables: &TableList) {
        for table in self.rows.iter().filter(|table| table.different + table.extra > 0) {
            terminal::result(format_args!("{}: {}", table.name, said_of(table)));
            table.named.iter().for_each(|row| terminal::result(format_args!("  {row}")));
        }
        let objects = &self.objects;
        let all = tables.unlike.iter().chain(&objects.different).chain(&objects.behind);
        all.for_each(terminal::result);
        let bytes = self.rows.iter().map(|table| table.bytes).sum();
        let took = duration(self.took.as_secs_f64());
        if self.is_equal(tables) {
            let rows = self.rows.iter().map(|table| table.rows[0]).sum();
            terminal::result(format_args!(
                "{} {}, {}, {}, {} ({} in {took})",
                styled(GOOD, "equal:"),
                counted(self.rows.len() as u64, "table"),
                counted(rows, "row"),
                counted(objects.compared as u64, "object"),
                counted(objects.sequences as u64, "sequence"),
                size(bytes),
            ));
            return;
        }
        let least = if self.rows.iter().any(|table| table.is_at_least) { "at least " } else { "" };
        terminal::result(format_args!(
            "{} {least}{}, {}, {} behind ({} in {took})",
            styled(BAD, "different:"),
            counted(self.rows_different(), "row"),
            counted((tables.unlike.len() + objects.different.len()) as u64, "object"),
            counted(objects.behind.len() as u64, "sequence"),
            size(bytes),
        ));
    }
}

/// How the rows of a table compare, in words.
fn said_of(table: &TableComparison) -> String {
    let extra = match table.extra {
        0 => String::new(),
        extra => format!(", {} more", grouped(extra)),
    };
    let least = if table.is_at_least { "at least " } else { "" };
    match table.different {
        0 => format!("the same{extra}"),
        1 => format!("1 row differs{extra}"),
        different => format!("{least}{} rows differ{extra}", grouped(different)),
    }
}
