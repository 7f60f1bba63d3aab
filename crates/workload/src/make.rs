//! The edges: files of sources, servers, and the folder on the disk.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use server::{Client, Limits, resolve_conninfo};
use tokio_postgres::SimpleQueryMessage;

use crate::catalogue::{CATALOGUE_QUERY, TableCatalogue};
use crate::error::WorkloadError;
use crate::folder::{WorkloadFolder, folder};
use crate::log::{
    LinePrefix, LogEntry, ServerLogFormat, SessionReader, StderrLine, csv_entry,
    csv_record_is_open, format_of, json_entry,
};
use crate::snapshot::{CallFilter, StatementsSnapshot};
use crate::tally::StatementTally;

/// The longest record of a log, in bytes.
const RECORD_MAX: usize = 16 << 20;

/// The source of a workload.
#[derive(Clone, Debug)]
pub enum WorkloadSource {
    /// pg_stat_statements as CSV, at one moment or at two.
    Statements(Vec<PathBuf>),
    /// pg_stat_statements of a server.
    Server(String),
    /// Server logs, and the prefix of their lines where they are stderr's.
    Logs(Vec<PathBuf>, LinePrefix),
}

/// A workload that is wanted.
#[derive(Clone, Debug)]
pub struct WorkloadRequest {
    /// The folder.
    pub out: PathBuf,
    /// The source.
    pub source: WorkloadSource,
    /// The server that resolves names.
    pub like: Option<String>,
    /// The calls that are read.
    pub filter: CallFilter,
    /// True if values of a log are written.
    pub has_values: bool,
}

/// Makes a workload.
pub fn make(request: &WorkloadRequest) -> Result<WorkloadFolder, WorkloadError> {
    let failed = |doing| {
        let path = request.out.clone();
        move |source| WorkloadError::File { doing, path, source }
    };
    let is_there = request.out.exists();
    if is_there && fs::read_dir(&request.out).map_err(failed("reading"))?.next().is_some() {
        return Err(WorkloadError::NotEmpty { path: request.out.clone() });
    }
    let mut tally = StatementTally::default();
    let mut from = None;
    let source = match &request.source {
        WorkloadSource::Statements(paths) => {
            let mut snapshots = paths
                .iter()
                .map(|path| csv_snapshot(path, &request.filter))
                .collect::<Result<Vec<_>, _>>()?;
            let place = paths.last().map(|path| path.display().to_string());
            let place = place.expect("the command line asks for one file at least");
            let last = snapshots.pop();
            let last = match (last, snapshots.pop()) {
                (Some(last), Some(first)) => Some(last.since(first, &mut tally)),
                (last, _) => last,
            };
            if let Some(last) = last {
                last.tally(&place, &mut tally)?;
            }
            "pg_stat_statements as CSV"
        }
        WorkloadSource::Server(conninfo) => {
            let mut client = connected(conninfo)?;
            let rows = rows_of(&mut client, "reading pg_stat_statements", FROM_SERVER)?;
            let lines = rows.into_iter().zip(1_u64..).map(|(row, line)| Ok((line, row)));
            StatementsSnapshot::read("pg_stat_statements", lines, &request.filter)?
                .tally("pg_stat_statements", &mut tally)?;
            from = Some(client);
            "pg_stat_statements of a server"
        }
        WorkloadSource::Logs(paths, prefix) => {
            let mut reader = SessionReader::new(request.filter.clone(), request.has_values);
            for path in paths {
                read_log(opened(path)?, path, prefix, &mut reader, &mut tally)?;
            }
            if reader.finish(&mut tally) == 0 {
                let hint = "set log_min_duration_statement = 0 (or log_statement = all and log_duration), lc_messages = C, \
                            and look at --since, --until, --database, --role and --application";
                let place = paths.first().map(|path| path.display().to_string());
                let place = place.expect("the command line asks for one file at least");
                return Err(WorkloadError::NoStatements { place, hint });
            }
            "server logs"
        }
    };
    let mut server = match (&request.like, from) {
        (Some(like), _) => Some(connected(like)?),
        (None, from) => from,
    };
    let mut catalogue = TableCatalogue::default();
    if let Some(client) = &mut server {
        for row in rows_of(client, "reading the catalogue", CATALOGUE_QUERY)?.iter().skip(1) {
            catalogue.take(row);
        }
    }
    let mut check = |text: &str| match &mut server {
        None => None,
        Some(client) => client.prepare(text).err().map(|error| {
            // The server's words may quote a value of ours, and no value of production.
            error
                .as_db_error()
                .map_or_else(|| error.to_string(), |error| error.message().to_owned())
        }),
    };
    let folder = folder(&tally, &catalogue, source, request.has_values, &mut check);
    for (file, text) in &folder.files {
        let path = request.out.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed("writing into"))?;
        }
        fs::write(&path, text).map_err(failed("writing into"))?;
    }
    Ok(folder)
}

const FROM_SERVER: &str = "SELECT now(), s.*, r.rolname, d.datname FROM pg_stat_statements s \
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.userid LEFT JOIN pg_catalog.pg_database d ON d.oid = s.dbid";

fn connected(conninfo: &str) -> Result<Client, WorkloadError> {
    let conninfo = resolve_conninfo(conninfo).map_err(server::ConnectError::from)?;
    Ok(server::connect(&conninfo, &Limits::of_administration())?)
}

/// The names of the columns, and the rows.
fn rows_of(
    client: &mut Client,
    doing: &'static str,
    sql: &str,
) -> Result<Vec<Vec<String>>, WorkloadError> {
    let messages = client.simple_query(sql).map_err(|error| {
        let why = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
        let hint = Some("pg_stat_statements needs shared_preload_libraries and CREATE EXTENSION pg_stat_statements in that database");
        WorkloadError::Server { doing, why, hint }
    })?;
    let mut rows = Vec::new();
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                rows.push(columns.iter().map(|column| column.name().to_owned()).collect());
            }
            SimpleQueryMessage::Row(row) => {
                // NULL is the empty text, as in CSV.
                rows.push((0..row.len()).map(|at| row.get(at).unwrap_or("").to_owned()).collect());
            }
            _ => {}
        }
    }
    Ok(rows)
}

fn opened(path: &Path) -> Result<BufReader<File>, WorkloadError> {
    let failed = |source| WorkloadError::File { doing: "reading", path: path.to_owned(), source };
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
    let start = reader.fill_buf().map_err(failed)?;
    if start.iter().take(4096).any(|b| *b == 0) || start.starts_with(&[0x1f, 0x8b]) {
        return Err(WorkloadError::WrongKind {
            place: path.display().to_string(),
            wanted: "text",
            why: "it holds bytes that no text has",
            hint: "unpack it first, as with gunzip",
        });
    }
    Ok(reader)
}

fn csv_snapshot(path: &Path, filter: &CallFilter) -> Result<StatementsSnapshot, WorkloadError> {
    snapshot(opened(path)?, &path.display().to_string(), filter)
}

/// Reads an export of pg_stat_statements, of which `place` is the name.
pub(crate) fn snapshot(
    export: impl Read,
    place: &str,
    filter: &CallFilter,
) -> Result<StatementsSnapshot, WorkloadError> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(export);
    let lines = reader.byte_records().map(|record| {
        let record = record.map_err(|error| {
            // The reader names no line where it could not read at all.
            let line = error.position().map_or(0, csv::Position::line);
            WorkloadError::Line { place: place.to_owned(), line, why: "it is no CSV".to_owned() }
        })?;
        let line = record.position().expect("a record that was read has a place").line();
        Ok((line, record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()))
    });
    StatementsSnapshot::read(place, lines, filter)
}

/// Reads a log, line by line.
pub(crate) fn read_log(
    mut lines: impl BufRead,
    path: &Path,
    prefix: &LinePrefix,
    sessions: &mut SessionReader,
    tally: &mut StatementTally,
) -> Result<(), WorkloadError> {
    let name = path.display().to_string();
    let failed = |source| WorkloadError::File { doing: "reading", path: path.to_owned(), source };
    let (mut bytes, mut number, mut refused, mut entries) = (Vec::new(), 0_u64, 0_u64, 0_u64);
    let (mut format, mut open): (_, Option<(u64, LogEntry)>) = (None, None);
    let mut record = String::new();
    loop {
        bytes.clear();
        if lines.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let kind = *format.get_or_insert_with(|| format_of(line));
        let mut take = |entry: &LogEntry, at: u64| {
            entries += 1;
            sessions.take(entry, &format!("{name} line {at}"), tally);
        };
        match kind {
            ServerLogFormat::Json => match json_entry(line) {
                Some(entry) => take(&entry, number),
                None => refused += 1,
            },
            ServerLogFormat::Csv => {
                record.push_str(line);
                if csv_record_is_open(&record) && record.len() < RECORD_MAX {
                    record.push('\n');
                    continue;
                }
                match csv_entry(&record) {
                    Some(entry) => take(&entry, number),
                    None => refused += 1,
                }
                record.clear();
            }
            ServerLogFormat::Stderr => match (prefix.read(line), &mut open) {
                (Some(StderrLine::Entry(entry)), _) => {
                    if let Some((at, before)) = open.replace((number, *entry)) {
                        take(&before, at);
                    }
                }
                (Some(StderrLine::Detail(detail)), Some((_, entry))) => entry.detail = detail,
                (None, Some((_, entry)))
                    if line.starts_with('\t') && entry.message.len() < RECORD_MAX =>
                {
                    let text = if entry.detail.is_empty() {
                        &mut entry.message
                    } else {
                        &mut entry.detail
                    };
                    text.push('\n');
                    text.push_str(&line[1..]);
                }
                (Some(_), _) => {}
                (None, _) => refused += 1,
            },
        }
    }
    if let Some((at, entry)) = open {
        entries += 1;
        sessions.take(&entry, &format!("{name} line {at}"), tally);
    }
    if entries == 0 {
        return Err(WorkloadError::WrongKind {
            place: name,
            wanted: "server's log",
            why: "none of its lines is one of csvlog, of jsonlog or of stderr with this log_line_prefix",
            hint: "give the server's log_line_prefix with --log-line-prefix, or an export with --statements",
        });
    }
    if refused > 0 {
        tally
            .notes
            .insert(format!("{refused} lines of {name} are no entries of a log and were left out"));
    }
    Ok(())
}
