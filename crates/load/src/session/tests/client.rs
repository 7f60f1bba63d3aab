//! A session in virtual time, with a scripted server at the other end.
//!
//! Times are milliseconds. What the client sends reads `Query SELECT 1`, `Parse P_0 SELECT $1`,
//! `Bind P_0 [5]`, `Describe`, `Execute`, `Sync`; messages are joined by ` | `. What the server
//! answers is written as message types: `1` ParseComplete, `2` BindComplete, `n` NoData,
//! `T:a,b` RowDescription, `D:1,NULL` DataRow, `C:COMMIT` CommandComplete (`_` is a blank), `I`
//! EmptyQueryResponse, `E:40001` ErrorResponse, `F:57P01` a fatal one, `N` NoticeResponse, `W` the one that says that a
//! commit no longer waits for its standby, `S` ParameterStatus, `G` CopyInResponse, `Z:I`
//! ReadyForQuery.

use std::path::Path;

use record::TransactionCounts;
use script::Xoroshiro128;

use crate::{
    ClientGroup, LedgerPlan, LoadScript, MessageLevel, Protocol, ScriptSyntax, UserMessage,
    grid::Grid,
    lane_history::LaneHistory,
    ledger::LaneLedger,
    program::{CommonSettings, Program},
    session::{LaneContext, Session, Wait},
    tally::{LaneInterval, Open, Statement, Tally, Totals},
};

const MS: u64 = 1_000_000;

pub(super) struct Client {
    pub(super) session: Session,
    pub(super) tally: Tally,
    pub(super) grid: Grid,
    program: Program,
    choose: Xoroshiro128,
    narration: Vec<UserMessage>,
    out: Vec<u8>,
    wait: Wait,
    pub(super) ledger: Option<LaneLedger>,
    pub(super) history: Option<LaneHistory>,
    /// Frames arrive one byte at a time.
    pub(super) byte_by_byte: bool,
}

/// A workload of one script that differs from pgbench's defaults as `change` says.
pub(super) fn workload(protocol: Protocol, script: &str) -> ClientGroup {
    let script = LoadScript {
        name: "test.sql".to_owned(),
        text: script.to_owned(),
        weight: 1,
        syntax: ScriptSyntax::Current,
    };
    ClientGroup::new("w", String::new(), vec![script], 1, protocol)
}

impl Client {
    pub(super) fn simple(script: &str) -> Client {
        Client::new(&workload(Protocol::Simple, script))
    }

    pub(super) fn new(workload: &ClientGroup) -> Client {
        let common = CommonSettings {
            random_seed: 1,
            default_seed: 2,
            statements: true,
            verbose_errors: false,
            debug: false,
            transactions: None,
            keeps_history: workload.scripts[0].text.contains("\\history"),
            message_bytes_max: 1 << 20,
        };
        let program = Program::new(workload, &common).expect("a workload");
        let commands = |script: &crate::program::ProgramScript| {
            vec![Statement::default(); script.script.commands.len()]
        };
        let totals = Totals {
            transactions: 0,
            open_loop: program.open_loop,
            unknown: 0,
            aborted: 0,
            first_errors: crate::tally::FirstErrors::new(),
            standstills: None,
            longest_ns: 0,
            served: stats::LatencyHistogram::new(),
            unserved: stats::LatencyHistogram::new(),
            slowest: None,
            open: Open::default(),
            statements: program.scripts.iter().map(commands).collect(),
            work: None,
            scripts: Vec::new(),
        };
        let grid = Grid { began: 0, anchor: 0, open: 0, ..Grid::UNDECIDED };
        let mut tally = Tally::new(1_000 * MS, vec![totals]);
        tally.begin(&grid);
        Client {
            session: Session::new(0, 0, &program, Xoroshiro128::from_seed(7)),
            tally,
            grid,
            program,
            choose: Xoroshiro128::from_seed(8),
            narration: Vec::new(),
            out: Vec::new(),
            wait: Wait::Next,
            ledger: None,
            history: None,
            byte_by_byte: false,
        }
    }

    pub(super) fn step(
        &mut self,
        at_ms: u64,
        step: impl FnOnce(&mut Session, &mut LaneContext<'_>) -> Wait,
    ) {
        let clock = move || at_ms * MS;
        let mut cx = LaneContext {
            program: &self.program,
            tally: &mut self.tally,
            log: None,
            ledger: self.ledger.as_mut(),
            history: self.history.as_mut(),
            narration: &mut self.narration,
            choose: &mut self.choose,
            out: &mut self.out,
            grid: self.grid,
            clock: &clock,
        };
        self.wait = step(&mut self.session, &mut cx);
    }

    /// Connects, and prepares what can be.
    pub(super) fn connects(&mut self) -> &mut Self {
        let mut out = Vec::new();
        self.session.connected();
        self.wait = self.session.prepare(&self.program, &mut out);
        self.out = out;
        self
    }

    pub(super) fn begins(&mut self, at_ms: u64) -> &mut Self {
        self.begins_late(at_ms, at_ms)
    }

    /// Begins a transaction that was due before.
    pub(super) fn begins_late(&mut self, at_ms: u64, due_ms: u64) -> &mut Self {
        self.step(at_ms, |session, cx| {
            session.choose(cx);
            session.begin(cx, at_ms * MS, due_ms * MS)
        });
        self
    }

    /// The moment comes that the session waits for.
    pub(super) fn wakes(&mut self, at_ms: u64) -> &mut Self {
        assert_eq!(self.wait, Wait::Until(at_ms * MS), "{:?}", self.narration);
        self.out.clear();
        self.step(at_ms, |session, cx| session.wake(cx, at_ms * MS));
        self
    }

    pub(super) fn sends(&mut self, expected: &str) -> &mut Self {
        let out = std::mem::take(&mut self.out);
        assert_eq!(shown(&out), expected, "{:?}", self.narration);
        self
    }

    /// After something else has been sent, which does not matter here.
    pub(super) fn sends_last(&mut self, expected: &str) -> &mut Self {
        let out = std::mem::take(&mut self.out);
        let shown = shown(&out);
        assert!(shown.ends_with(expected), "{shown}, said {:?}", self.narration);
        self
    }

    /// The lane hands over the intervals that are over before it lets the session hear.
    pub(super) fn hears_rolled(
        &mut self,
        at_ms: u64,
        answer: &str,
        into: &mut Vec<LaneInterval>,
    ) -> &mut Self {
        while let Some(over) = self.tally.roll(at_ms * MS, &self.grid, |_, _| 0) {
            into.push(over);
        }
        self.hears(at_ms, answer)
    }

    pub(super) fn hears(&mut self, at_ms: u64, answer: &str) -> &mut Self {
        self.hears_bytes(at_ms, &messages(answer))
    }

    pub(super) fn hears_all(&mut self, at_ms: u64, answers: &[&str]) -> &mut Self {
        for answer in answers {
            self.hears(at_ms, answer);
        }
        self
    }

    pub(super) fn hears_bytes(&mut self, at_ms: u64, bytes: &[u8]) -> &mut Self {
        self.out.clear();
        let size = if self.byte_by_byte { 1 } else { bytes.len() };
        let mut last = Wait::Server;
        for piece in bytes.chunks(size) {
            self.step(at_ms, |session, cx| session.input(cx, at_ms * MS, piece));
            if self.wait != Wait::Server {
                last = self.wait;
            }
        }
        self.wait = last;
        self
    }

    /// The connection is gone: whether the outcome is unknown, and what is said.
    pub(super) fn loses_its_connection(&mut self, at_ms: u64, unknown: bool) -> String {
        let mut is_unknown = false;
        self.step(at_ms, |session, cx| {
            is_unknown = session.outcome_is_unknown(cx);
            Wait::Server
        });
        assert_eq!(is_unknown, unknown);
        self.session.lost(&self.program, None)
    }

    /// Opens an account, to be kept in `directory`.
    pub(super) fn keeps_a_ledger(&mut self, directory: &Path) -> &mut Self {
        let directory = directory.display().to_string();
        let plan = LedgerPlan { directory, seed: 42 };
        self.ledger = Some(LaneLedger::create(&plan, 0).expect("a ledger"));
        self.session.open_account(&self.program, Some(plan.seed), 1);
        self
    }

    /// Opens an account with a history, to be kept in `directory`.
    pub(super) fn keeps_a_history(&mut self, directory: &Path) -> &mut Self {
        let [server, isolation, workload] = ["p", "i", "w"].map(str::to_owned);
        let groups = vec![crate::HistoryGroup { server, isolation, workload }];
        let plan = crate::HistoryPlan { directory: directory.display().to_string(), groups };
        self.history = Some(LaneHistory::create(&plan, 0, 1).expect("a history"));
        self.session.open_account(&self.program, None, 3);
        self
    }

    /// Gives up whatever is under way.
    pub(super) fn gives_up(&mut self, at_ms: u64) -> &mut Self {
        self.step(at_ms, |session, cx| {
            session.note_unfinished(cx, at_ms * MS);
            session.account_for_loss(cx, at_ms * MS);
            session.connected();
            Wait::Next
        });
        self
    }

    pub(super) fn waits(&mut self, expected: Wait) -> &mut Self {
        assert_eq!(self.wait, expected, "{:?}", self.narration);
        self
    }

    /// The last transaction is over, and the next may begin.
    pub(super) fn is_done(&mut self) -> &mut Self {
        self.waits(Wait::Next).sends("")
    }

    /// The client has aborted, and this was the last thing it said.
    pub(super) fn has_aborted(&mut self, why: &str) -> &mut Self {
        assert_eq!(self.wait, Wait::Gone, "{:?}", self.narration);
        let mut errors =
            self.narration.iter().filter(|message| message.level == MessageLevel::Error);
        assert_eq!(errors.next_back().map_or("", |message| &message.text), why);
        self
    }

    pub(super) fn said(&self) -> Vec<&str> {
        self.narration.iter().map(|message| message.text.as_str()).collect()
    }

    pub(super) fn variable(&self, name: &str) -> String {
        let Some(slot) = self.program.names.slot(name) else { return "no such name".to_owned() };
        let mut text = Vec::new();
        self.session.variables.write(slot, &mut text);
        String::from_utf8(text).expect("text")
    }

    /// Counts since the last call.
    pub(super) fn counts(&mut self) -> TransactionCounts {
        self.tally.finish(0, &self.grid).cells.remove(0).counts
    }
}

pub(super) fn messages(answer: &str) -> Vec<u8> {
    answer.split(' ').flat_map(message).collect()
}

fn message(word: &str) -> Vec<u8> {
    let (tag, text) = word.split_once(':').unwrap_or((word, ""));
    let mut body = Vec::new();
    let tag = match tag {
        "T" => {
            let names: Vec<_> = text.split(',').collect();
            body.extend((names.len() as u16).to_be_bytes());
            for name in names {
                body.extend(name.as_bytes());
                body.extend([0; 19]);
            }
            b'T'
        }
        "D" => {
            let values: Vec<_> = text.split(',').collect();
            body.extend((values.len() as u16).to_be_bytes());
            for value in values {
                if value == "NULL" {
                    body.extend((-1_i32).to_be_bytes());
                } else {
                    body.extend((value.len() as i32).to_be_bytes());
                    body.extend(value.as_bytes());
                }
            }
            b'D'
        }
        "C" => {
            let text = if text.is_empty() { "SELECT 1" } else { text };
            body.extend(text.replace('_', " ").as_bytes());
            body.push(0);
            b'C'
        }
        // As a server in another language says it.
        "W" => {
            for (field, value) in [('S', "WARNUNG"), ('C', "01000"), ('M', "abgebrochen")] {
                body.push(field as u8);
                body.extend(value.as_bytes());
                body.push(0);
            }
            body.extend(b"RSyncRepWaitForLSN\0\0");
            b'N'
        }
        "E" | "F" | "N" => {
            let severity = match tag {
                "E" => "ERROR",
                "F" => "FATAL",
                _ => "NOTICE",
            };
            let state = if text.is_empty() { "00000" } else { text };
            for (field, value) in [('S', severity), ('V', severity), ('C', state), ('M', "why")] {
                body.push(field as u8);
                body.extend(value.as_bytes());
                body.push(0);
            }
            body.push(0);
            if tag == "N" { b'N' } else { b'E' }
        }
        "S" => {
            body.extend(b"TimeZone\0UTC\0");
            b'S'
        }
        "G" => {
            body.extend([0, 0, 0]);
            b'G'
        }
        "Z" => {
            body.extend(text.as_bytes());
            b'Z'
        }
        "1" | "2" | "n" | "I" | "s" => tag.as_bytes()[0],
        other => panic!("no message is called {other}"),
    };
    let mut bytes = vec![tag];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn shown(mut out: &[u8]) -> String {
    let mut words = Vec::new();
    while let [tag, a, b, c, d, rest @ ..] = out {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
        let (body, rest) = rest.split_at(length);
        out = rest;
        let mut strings = body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut string = || strings.next().unwrap_or_default().into_owned();
        words.push(match tag {
            b'Q' => format!("Query {}", string()),
            b'P' => format!("Parse {} {}", string(), string()).replace("  ", " "),
            b'B' => {
                let (_, name) = (string(), string());
                format!("Bind {name} {}", parameters(&body[name.len() + 2..])).replace("  ", " ")
            }
            b'D' => "Describe".to_owned(),
            b'E' => "Execute".to_owned(),
            b'S' => "Sync".to_owned(),
            b'X' => "Terminate".to_owned(),
            other => format!("{}?", *other as char),
        });
    }
    words.join(" | ")
}

fn parameters(body: &[u8]) -> String {
    let number = |at: usize| usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
    let mut at = 2 + 2 * number(0);
    let n = number(at);
    at += 2;
    let mut values = Vec::new();
    for _ in 0..n {
        let length = i32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        at += 4;
        match usize::try_from(length) {
            Ok(length) => {
                values.push(String::from_utf8_lossy(&body[at..at + length]).into_owned());
                at += length;
            }
            Err(_) => values.push("NULL".to_owned()),
        }
    }
    format!("{values:?}").replace('"', "")
}
