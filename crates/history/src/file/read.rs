//! Reads the lines of a file.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use super::number::integer;
use super::{VERSION, VERSION_BEFORE, VERSION_WITHOUT_END};
use crate::history::{
    ElementList, History, HistorySession, HistoryTransaction, HistoryWorkload, Key, ObjectKind,
    Operation, TooLong, TransactionOutcome,
};
use crate::{FaultKind, HistoryFault};

/// A file of which nothing can be judged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ReadError {
    #[error("could not read {file}, line {line}: {why}")]
    Io { file: String, line: u64, why: io::Error },
    #[error("{file} is not a history: its first line must be \"history {VERSION}\"")]
    Other { file: String },
    #[error(
        "{file} has version {found}, this pgrig reads {VERSION_WITHOUT_END} to {VERSION}; read it with the \
         pgrig that wrote it"
    )]
    Version { file: String, found: String },
    #[error("{file}, line {line}: {why}")]
    TooLong { file: String, line: u64, why: TooLong },
}

/// A longer line cannot be one of a history.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Adds what a file says to a history. What is wrong with a line is a fault of the history; what
/// follows is read.
pub fn read(history: &mut History, file: &str, input: impl BufRead) -> Result<(), ReadError> {
    let elsewhere = history.sessions().iter().map(|session| session.client).collect();
    let mut reader = Reader {
        file: history.add_file(file),
        history,
        name: file,
        elsewhere,
        groups: HashMap::new(),
        clients: HashMap::new(),
        lists: HashMap::new(),
        has_lost: false,
        bound: None,
        end: End::NotTold,
        numbers: Vec::new(),
        line: 0,
    };
    reader.all(input)
}

struct Reader<'a> {
    history: &'a mut History,
    name: &'a str,
    file: u32,
    /// Clients of which another file tells.
    elsewhere: HashSet<u32>,
    /// The indices of the file's workloads.
    groups: HashMap<u32, u32>,
    clients: HashMap<u32, Client>,
    /// What the file said last of each list.
    lists: HashMap<Key, ElementList>,
    /// A line could not be read, which may have told of a list.
    has_lost: bool,
    /// The bound of the moments in nanoseconds; none in a version that tells of none. The largest number
    /// where a line that told of it may be lost.
    bound: Option<u64>,
    end: End,
    numbers: Vec<i64>,
    line: u64,
}

/// Whether a file has its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The version has none.
    NotTold,
    Missing,
    There,
}

/// A client while its file is read.
struct Client {
    session: u32,
    open: Option<Open>,
    operations: Vec<Operation>,
    last: u64,
    /// Time at which its last transaction ended.
    ended: u64,
}

struct Open {
    number: u64,
    begun: u64,
    /// The bound of that moment.
    bound: u64,
    line: u64,
    /// A line of it could not be read.
    is_spoiled: bool,
}

/// Reason why a line was rejected.
enum No {
    Bad(String),
    TooLong(TooLong),
}

impl From<TooLong> for No {
    fn from(why: TooLong) -> No {
        No::TooLong(why)
    }
}

fn bad(why: impl Into<String>) -> No {
    No::Bad(why.into())
}

impl Reader<'_> {
    fn all(&mut self, mut input: impl BufRead) -> Result<(), ReadError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let failed =
                |why| ReadError::Io { file: self.name.to_owned(), line: self.line + 1, why };
            let room = LINE_BYTES_MAX as u64;
            let length = io::Read::take(&mut input, room).read_until(b'\n', &mut line);
            if length.map_err(failed)? == 0 {
                break;
            }
            self.line += 1;
            let Some((b'\n', text)) = line.split_last() else {
                self.blame(FaultKind::CutOff);
                break;
            };
            if self.line == 1 {
                self.first(text)?;
                continue;
            }
            match self.take(text) {
                Ok(()) => {}
                Err(No::TooLong(why)) => {
                    let (file, line) = (self.name.to_owned(), self.line);
                    return Err(ReadError::TooLong { file, line, why });
                }
                Err(No::Bad(why)) => self.refuse(text, why),
            }
        }
        if self.line == 0 {
            return Err(ReadError::Other { file: self.name.to_owned() });
        }
        let is_told = self.history.faults().last().is_some_and(|fault| {
            fault.what == FaultKind::CutOff
                && (fault.file.as_str(), fault.line) == (self.name, self.line)
        });
        if self.end == End::Missing && !is_told {
            self.blame(FaultKind::CutOff);
        }
        self.close_all()
    }

    fn first(&mut self, text: &[u8]) -> Result<(), ReadError> {
        let file = self.name.to_owned();
        match text.strip_prefix(b"history ") {
            Some(version) if version == VERSION_WITHOUT_END.as_bytes() => Ok(()),
            Some(version)
                if [VERSION_BEFORE, VERSION].iter().any(|it| version == it.as_bytes()) =>
            {
                self.end = End::Missing;
                self.bound = Some(u64::MAX);
                Ok(())
            }
            Some(version) => {
                let found = String::from_utf8_lossy(&version[..version.len().min(20)]).into_owned();
                Err(ReadError::Version { file, found })
            }
            None => Err(ReadError::Other { file }),
        }
    }

    fn blame(&mut self, what: FaultKind) {
        self.history.blame(HistoryFault { file: self.name.to_owned(), line: self.line, what });
    }

    /// A line that cannot be understood. Of what it may have told nothing is believed: it may stand for
    /// several lines, and those of any client.
    fn refuse(&mut self, text: &[u8], why: String) {
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        let shown: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.blame(FaultKind::Line(format!("\"{shown}\": {why}")));
        self.spoil();
    }

    /// Lines are missing here.
    fn spoil(&mut self) {
        self.has_lost = true;
        self.lists.clear();
        // A line that was lost may have told of a larger bound.
        self.bound = self.bound.map(|_| u64::MAX);
        let open = self.clients.values_mut().filter_map(|client| client.open.as_mut());
        open.for_each(|open| open.is_spoiled = true);
    }

    fn take(&mut self, text: &[u8]) -> Result<(), No> {
        let (letter, rest) = text.split_first().ok_or_else(|| bad("the line is empty"))?;
        match letter {
            _ if self.end == End::There => return Err(bad("it stands behind the last line")),
            _ if !matches!(rest, [] | [b' ', ..]) => {
                return Err(bad("its first word is no letter"));
            }
            b'g' => return self.group(rest),
            b'x' if rest.is_empty() => {
                self.lists.clear();
                return Ok(());
            }
            b'z' if rest.is_empty() && self.end == End::Missing => {
                self.end = End::There;
                return Ok(());
            }
            _ => {}
        }
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        for word in rest.split(|byte| *byte == b' ').skip(1) {
            numbers
                .push(integer(word).ok_or_else(|| bad("there is something other than integers"))?);
        }
        let taken = match (letter, numbers.split_first()) {
            (b'e', Some((bound, []))) => moment(*bound).map(|bound| self.bound = Some(bound)),
            (b'n', Some((files, []))) => {
                moment(*files).map(|files| self.history.expect_files(files))
            }
            (_, None) => Err(bad("it names no client")),
            (letter, Some((client, rest))) => match u32::try_from(*client) {
                Ok(client) => self.said(*letter, client, rest),
                Err(_) => Err(bad(format!("{client} is no number of a client"))),
            },
        };
        self.numbers = numbers;
        taken
    }

    fn group(&mut self, text: &[u8]) -> Result<(), No> {
        let text = str::from_utf8(text).map_err(|_| bad("it is not UTF-8"))?;
        if text.contains(|c: char| c.is_control() && c != '\t') {
            return Err(bad("it holds a control character"));
        }
        let words: Vec<&str> = text.trim_start().split('\t').collect();
        let [number, server, isolation, workload] = words[..] else {
            return Err(bad("a workload has a number, a server, a level and a name"));
        };
        let number: u32 = number.parse().map_err(|_| bad("a workload has a number"))?;
        let [server, isolation, workload] = [server, isolation, workload].map(str::to_owned);
        let index = self.history.add_group(HistoryWorkload { server, isolation, workload });
        self.groups.insert(number, index);
        Ok(())
    }

    fn said(&mut self, letter: u8, client: u32, rest: &[i64]) -> Result<(), No> {
        match (letter, rest) {
            (b'c', [group, backend, _]) => self.connected(client, *group, *backend),
            (b'b', [number, at]) => self.begun(client, *number, *at),
            (b'o', [at]) => self.ended(client, TransactionOutcome::Committed, *at),
            (b'f', [at]) => self.ended(client, TransactionOutcome::Failed, *at),
            (b'u', [at]) => self.ended(client, TransactionOutcome::Unknown, *at),
            (b'd', [writes]) => self.withdrawn(client, *writes),
            (b'a', [key, value]) => {
                let key = self.history.intern(ObjectKind::List, *key);
                self.operation(client, Operation::Append { key, value: *value })
            }
            (b'w', [key, value]) => {
                let key = self.history.intern(ObjectKind::Register, *key);
                self.operation(client, Operation::Write { key, value: *value })
            }
            (b'r', [key, value @ ..]) if value.len() < 2 => {
                let key = self.history.intern(ObjectKind::Register, *key);
                let read = match value.first() {
                    Some(value) => Operation::Read { key, value: *value },
                    None => Operation::ReadNothing { key },
                };
                self.operation(client, read)
            }
            (b'l', [key, common, elements @ ..]) => self.list(client, *key, *common, elements),
            (b's', [total, balances @ ..]) => {
                let balances = self.history.add_list(balances)?;
                self.operation(client, Operation::ReadAccounts { total: *total, balances })
            }
            _ => Err(bad("it is no line of a history, or has too few or too many numbers")),
        }
    }

    fn connected(&mut self, client: u32, group: i64, backend: i64) -> Result<(), No> {
        if self.elsewhere.contains(&client) {
            return Err(bad(format!("client {client} stands in two files")));
        }
        let group = u32::try_from(group).ok().and_then(|group| self.groups.get(&group));
        let group = *group.ok_or_else(|| bad("no line above it tells of its workload"))?;
        let backend = i32::try_from(backend).map_err(|_| bad("it names no backend"))?;
        let session = HistorySession { client, group, backend, file: self.file };
        let session = self.history.add_session(session);
        match self.clients.get_mut(&client) {
            Some(known) => {
                if let Some(open) = known.open.take() {
                    close(self.history, known, open, (TransactionOutcome::Unknown, u64::MAX), 0)?;
                }
                known.session = session;
            }
            None => {
                let (open, operations) = (None, Vec::new());
                let known = Client { session, open, operations, last: 0, ended: 0 };
                self.clients.insert(client, known);
            }
        }
        Ok(())
    }

    fn begun(&mut self, client: u32, number: i64, at: i64) -> Result<(), No> {
        let line = self.line;
        let bound = self.bound.unwrap_or(0); // In version 1, it is the clock of the run.
        let known = known(&mut self.clients, client)?;
        if let Some(open) = known.open.take() {
            // Its outcome was never noted.
            close(self.history, known, open, (TransactionOutcome::Unknown, u64::MAX), 0)?;
        }
        let (number, begun) = (moment(number)?, moment(at)?);
        if number <= known.last {
            return Err(bad(format!(
                "client {client} begins {number}, its last was {}",
                known.last
            )));
        }
        if begun < known.ended {
            let ended = known.ended;
            return Err(bad(format!(
                "client {client} begins at {begun}, its last ended at {ended}"
            )));
        }
        let expected = known.last + 1;
        known.last = number;
        known.open = Some(Open { number, begun, bound, line, is_spoiled: false });
        if number > expected {
            self.blame(FaultKind::Gap { client, expected, found: number });
            self.spoil();
            // What begins here is whole.
            if let Some(open) = self.clients.get_mut(&client).and_then(|one| one.open.as_mut()) {
                // In version 1, a bound is that of the run's clock.
                (open.is_spoiled, open.bound) = (false, self.bound.unwrap_or(0));
            }
        }
        Ok(())
    }

    fn operation(&mut self, client: u32, operation: Operation) -> Result<(), No> {
        let known = known(&mut self.clients, client)?;
        if known.open.is_none() {
            return Err(bad(format!("client {client} has no open transaction")));
        }
        known.operations.push(operation);
        Ok(())
    }

    /// The last `writes` did not happen. What the client has read since the first of them may have seen
    /// them all the same, and is not judged.
    fn withdrawn(&mut self, client: u32, writes: i64) -> Result<(), No> {
        let known = known(&mut self.clients, client)?;
        let Some(before) = usize::try_from(writes).ok().and_then(|writes| writes.checked_sub(1))
        else {
            return Err(bad("it takes no write back"));
        };
        let is_write =
            |one: &Operation| matches!(one, Operation::Append { .. } | Operation::Write { .. });
        let operations = known.operations.iter().enumerate().rev();
        let mut written = operations.filter(|(_, one)| is_write(one));
        match (known.open.is_some(), written.nth(before)) {
            (true, Some((first, _))) => known.operations.truncate(first),
            _ => return Err(bad(format!("client {client} has not written so often"))),
        }
        Ok(())
    }

    fn list(&mut self, client: u32, key: i64, common: i64, rest: &[i64]) -> Result<(), No> {
        let common = usize::try_from(common).map_err(|_| bad("so many elements are not known"))?;
        let name = key;
        let key = self.history.intern(ObjectKind::List, name);
        let earlier = self.lists.get(&key).copied().filter(|list| list.len() >= common);
        if common > 0 && earlier.is_none() {
            // What a line that could not be read may have said is missing; a read fewer.
            return match self.has_lost {
                true => Ok(()),
                false => {
                    Err(bad(format!("the file has not said {common} elements of list {name}")))
                }
            };
        }
        let list = self.history.add_read(key, earlier, common, rest)?;
        self.lists.insert(key, list);
        self.operation(client, Operation::ReadList { key, list })
    }

    fn ended(&mut self, client: u32, outcome: TransactionOutcome, at: i64) -> Result<(), No> {
        let ended = moment(at)?;
        let bound = self.bound.unwrap_or(0); // In version 1, it is the clock of the run.
        let known = known(&mut self.clients, client)?;
        let Some(open) = &known.open else {
            return Err(bad(format!("client {client} has no open transaction")));
        };
        if ended < open.begun {
            return Err(bad(format!("it ended before it began, at {}", open.begun)));
        }
        if let Some(open) = known.open.take() {
            known.ended = ended;
            close(self.history, known, open, (outcome, ended), bound)?;
        }
        Ok(())
    }

    /// Closes the open transactions at the end: their outcome is unknown.
    fn close_all(&mut self) -> Result<(), ReadError> {
        let mut left: Vec<(u32, Client)> = self.clients.drain().collect();
        left.sort_by_key(|(client, _)| *client);
        for (_, mut client) in left {
            let Some(open) = client.open.take() else { continue };
            let closed =
                close(self.history, &mut client, open, (TransactionOutcome::Unknown, u64::MAX), 0);
            let (file, line) = (self.name.to_owned(), self.line);
            closed.map_err(|why| ReadError::TooLong { file, line, why })?;
        }
        Ok(())
    }
}

fn known(clients: &mut HashMap<u32, Client>, client: u32) -> Result<&mut Client, No> {
    let none = || bad(format!("no line above it tells that client {client} is connected"));
    clients.get_mut(&client).ok_or_else(none)
}

fn moment(number: i64) -> Result<u64, No> {
    u64::try_from(number).map_err(|_| bad(format!("{number} is less than zero")))
}

/// Adds a transaction to the history. One that lacks a line is there without its operations: what they
/// were is not known, and so it may stand for two.
fn close(
    history: &mut History,
    client: &mut Client,
    open: Open,
    (outcome, ended): (TransactionOutcome, u64),
    bound: u64,
) -> Result<(), TooLong> {
    let Open { number, begun, line, is_spoiled, .. } = open;
    let outcome = if is_spoiled { TransactionOutcome::Unknown } else { outcome };
    let ended = if outcome == TransactionOutcome::Unknown { u64::MAX } else { ended };
    let (session, bound) = (client.session, bound.max(open.bound));
    let line = u32::try_from(line).unwrap_or(u32::MAX);
    let (first, operations) = (0, 0);
    let closed = HistoryTransaction {
        session,
        first,
        operations,
        outcome,
        line,
        number,
        begun,
        ended,
        bound,
    };
    let told = if is_spoiled { &[][..] } else { &client.operations };
    let added = history.add(closed, told);
    client.operations.clear();
    added
}
