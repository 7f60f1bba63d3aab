//! One line of a ledger, as text that a person can grep and `COPY` can read.
//!
//! ```text
//! ledger 4 seed 42
//! s 3 16 61034000000 9 71 2 10.0.0.3 5432 1
//!                             from now on, client 3 is served by the server of cluster 9 that started at 71, with
//!                             timeline 2, at this address and port; its commits wait for a standby
//! t 3 17 61034600000 9 71 2 10.0.0.3 5432 -
//!                             the same of this transaction alone; it is not known for whom its commit waits
//! i 3 17 61034567890          client 3 is about to send its transaction 17, at 61.03 s
//! r 3 17 61035561201 4 21     it has read the row of client 4's transaction 21
//! p 3 17 61035561201 2 0      it wrote two rows into the insert table and none into the update table
//! a 3 17 61035561201          the server acknowledged it
//! w 3 18 61036120775          … with a warning that no standby may have it
//! f 3 19 61036941030 40001    it failed, and for certain
//! n 3 21 61037000000          it ended well and wrote no row
//! u 3 20 61040000000          unknown
//! l 3 20 61040000000          after it, the connection was lost
//! e 3 21 61050000000          client 3 is done; 21 was its last transaction
//! ```

use std::io::Write;

use super::look::{AcknowledgingServer, ServerLook};
use crate::Moment;

/// Something that a client knows of one of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The client's number.
    pub client: u32,
    /// Sequence number of the client's transaction, from 1.
    pub seq: u64,
    /// Time of the entry.
    pub at: Moment,
    /// The client's knowledge.
    pub what: LedgerKnowledge,
}

/// A client's knowledge of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerKnowledge {
    /// It is going to send the transaction.
    Intended,
    /// The server has acknowledged it.
    Acknowledged,
    /// The server has acknowledged it, and warned that it may not have been replicated.
    AcknowledgedAlone,
    /// It ended well and wrote no row of the ledger: its script sent no statement that writes one, or the
    /// server said of each that it changed no row.
    WroteNothing,
    /// It has not happened: an error of the server's with its SQLSTATE, or one of the client's own
    /// before anything was sent.
    Failed(Option<[u8; 5]>),
    /// The connection was lost while the server had something to answer, or the rig itself cancelled
    /// or abandoned the transaction.
    Unknown,
    /// The server, and whether commits wait for a standby there.
    Looked(ServerLook),
    /// The server that gives the answer that the next entry notes, as scripts said it until format 3.
    Given(AcknowledgingServer),
    /// The row that it has read, as its script says; its acknowledgement follows.
    Read(ReadRow),
    /// The rows that the transaction whose outcome follows has written, as the server said, where that is not
    /// one in each table. Of an unknown outcome: those that it may have written.
    Wrote(LedgerWrite),
    /// The connection was lost; the entry names the client's last transaction, or 0.
    Disconnected,
    /// The client is done; the entry names its last transaction, or 0. What has no such entry is cut off.
    Ended,
}

/// Rows of the ledger that a transaction has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerWrite {
    /// The number of rows in the insert table.
    pub insert: u32,
    /// True if the client's row in the update table.
    pub update: bool,
}

impl LedgerWrite {
    /// No row.
    pub const NOTHING: LedgerWrite = LedgerWrite { insert: 0, update: false };
    /// One row in each table: what an entry without a [`LedgerKnowledge::Wrote`] before it means.
    pub const ONE_EACH: LedgerWrite = LedgerWrite { insert: 1, update: true };
}

/// A row that a transaction has read, by the transaction that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadRow {
    /// The client that wrote it.
    pub client: u32,
    /// Sequence number of that client's transaction.
    pub seq: u64,
}

/// The format that [`header_line`] announces.
const FORMAT: u32 = 4;

/// The first format in which every client says that it is done. Files of format 2 are taken for whole.
const FORMAT_WITH_ENDS: u32 = 3;

/// The oldest format that is read.
const FORMAT_OLDEST: u32 = 2;

/// The contents of a first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seed: u64,
    /// The file says of each of its clients that it is done.
    pub(super) has_ends: bool,
}

/// The first line of a file: its format and the seed of its chains.
pub fn header_line(seed: u64) -> String {
    format!("ledger {FORMAT} seed {seed}\n")
}

/// Reads a first line.
pub(super) fn parse_header(line: &str) -> Result<Header, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["ledger", format, rest @ ..] = &words[..] else {
        return Err("it does not begin as a ledger does".to_owned());
    };
    let known = format.parse().ok().filter(|format| (FORMAT_OLDEST..=FORMAT).contains(format));
    let (Some(known), ["seed", seed]) = (known, rest) else {
        return Err(format!(
            "the ledger has format {format}, this pgrig reads {FORMAT_OLDEST} to {FORMAT}"
        ));
    };
    let seed = seed.parse().map_err(|_| format!("\"{seed}\" is no seed"))?;
    Ok(Header { seed, has_ends: known >= FORMAT_WITH_ENDS })
}

impl LedgerEntry {
    /// Appends its line to what is to be written.
    pub fn write(&self, out: &mut Vec<u8>) {
        let LedgerEntry { client, seq, at: Moment(at), what } = self;
        let letter = match what {
            LedgerKnowledge::Intended => 'i',
            LedgerKnowledge::Acknowledged => 'a',
            LedgerKnowledge::AcknowledgedAlone => 'w',
            LedgerKnowledge::WroteNothing => 'n',
            LedgerKnowledge::Wrote(_) => 'p',
            LedgerKnowledge::Ended => 'e',
            LedgerKnowledge::Failed(_) => 'f',
            LedgerKnowledge::Unknown => 'u',
            LedgerKnowledge::Looked(ServerLook { lasts: true, .. }) => 's',
            LedgerKnowledge::Looked(_) => 't',
            LedgerKnowledge::Given(_) => 'g',
            LedgerKnowledge::Read(_) => 'r',
            LedgerKnowledge::Disconnected => 'l',
        };
        // Memory is all that is written to here.
        let _ = match what {
            LedgerKnowledge::Failed(Some(sqlstate)) => {
                let sqlstate = String::from_utf8_lossy(sqlstate);
                writeln!(out, "{letter} {client} {seq} {at} {sqlstate}")
            }
            LedgerKnowledge::Looked(ServerLook { giver, awaits_standby, .. }) => {
                let AcknowledgingServer { cluster, server, timeline, address, port } = giver;
                let address = address.map_or("-".to_owned(), |address| address.to_string());
                let awaits = awaits_standby.map_or("-", |awaits| if awaits { "1" } else { "0" });
                writeln!(
                    out,
                    "{letter} {client} {seq} {at} {cluster} {server} {timeline} {address} {port} {awaits}"
                )
            }
            LedgerKnowledge::Given(AcknowledgingServer { server, timeline, .. }) => {
                writeln!(out, "{letter} {client} {seq} {at} {server} {timeline}")
            }
            LedgerKnowledge::Wrote(LedgerWrite { insert, update }) => {
                let update = u8::from(*update);
                writeln!(out, "{letter} {client} {seq} {at} {insert} {update}")
            }
            LedgerKnowledge::Read(ReadRow { client: of, seq: row }) => {
                writeln!(out, "{letter} {client} {seq} {at} {of} {row}")
            }
            _ => writeln!(out, "{letter} {client} {seq} {at}"),
        };
    }

    /// Reads a line without its newline.
    pub(super) fn parse(line: &str) -> Result<LedgerEntry, String> {
        let bad = || format!("\"{line}\" is no entry of a ledger");
        let words: Vec<&str> = line.split(' ').collect();
        let [letter, client, seq, at, rest @ ..] = &words[..] else { return Err(bad()) };
        let what = match (*letter, rest) {
            ("i", []) => LedgerKnowledge::Intended,
            ("a", []) => LedgerKnowledge::Acknowledged,
            ("w", []) => LedgerKnowledge::AcknowledgedAlone,
            ("f", []) => LedgerKnowledge::Failed(None),
            ("f", [sqlstate]) => {
                LedgerKnowledge::Failed(Some(sqlstate.as_bytes().try_into().map_err(|_| bad())?))
            }
            ("s" | "t", [cluster, server, timeline, address, port, awaits]) => {
                let address = (*address != "-").then(|| address.parse()).transpose();
                LedgerKnowledge::Looked(ServerLook {
                    giver: AcknowledgingServer {
                        cluster: cluster.parse().map_err(|_| bad())?,
                        server: server.parse().map_err(|_| bad())?,
                        timeline: timeline.parse().map_err(|_| bad())?,
                        address: address.map_err(|_| bad())?,
                        port: port.parse().map_err(|_| bad())?,
                    },
                    awaits_standby: match *awaits {
                        "0" => Some(false),
                        "1" => Some(true),
                        "-" => None,
                        _ => return Err(bad()),
                    },
                    lasts: *letter == "s",
                })
            }
            ("g", [server, timeline]) => LedgerKnowledge::Given(AcknowledgingServer {
                cluster: 0,
                server: server.parse().map_err(|_| bad())?,
                timeline: timeline.parse().map_err(|_| bad())?,
                address: None,
                port: 0,
            }),
            ("r", [client, seq]) => LedgerKnowledge::Read(ReadRow {
                client: client.parse().map_err(|_| bad())?,
                seq: seq.parse().map_err(|_| bad())?,
            }),
            ("p", [insert, update]) => LedgerKnowledge::Wrote(LedgerWrite {
                insert: insert.parse().map_err(|_| bad())?,
                update: match *update {
                    "0" => false,
                    "1" => true,
                    _ => return Err(bad()),
                },
            }),
            ("n", []) => LedgerKnowledge::WroteNothing,
            ("e", []) => LedgerKnowledge::Ended,
            ("u", []) => LedgerKnowledge::Unknown,
            ("l", []) => LedgerKnowledge::Disconnected,
            _ => return Err(bad()),
        };
        Ok(LedgerEntry {
            client: client.parse().map_err(|_| bad())?,
            seq: seq.parse().map_err(|_| bad())?,
            at: Moment(at.parse().map_err(|_| bad())?),
            what,
        })
    }
}
