//! The file of a history: text, one line for each thing that a client does or hears.
//!
//! ```text
//! history 3
//! n 4                                the load wrote 4 files: 0.history to 3.history
//! g 0     primary  repeatable read  mixed    workload 0: its server, its level, its name (tabs between)
//! c 3 0 4711 61034000000             client 3 of workload 0 is connected; its backend is 4711
//! b 3 17 61034567890                 client 3 begins transaction 17, at 61.034 s
//! l 3 801 2 55                       it has read list 801: the first 2 elements of what this file said
//!                                    of it last, and 55
//! a 3 801 56                         it is about to append 56 to list 801
//! r 3 7 99                           it has read 99 in register 7; nothing, where there is no number
//! w 3 7 100                          it is about to write 100 into register 7
//! s 3 1000 300 700                   it has read all balances, whose sum is to be 1000
//! d 3 1                              its last write has changed no row, or was taken back to a savepoint; what
//!                                    it has read since then counts for nothing
//! o 3 61036120775                    the transaction was acknowledged
//! f 3 61036120775                    … has failed, and for certain
//! u 3 61036120775                    … is unknown
//! x                                  what this file said of lists counts for nothing from here on
//! e 250000                           the moments from here on may differ by 250 µs from the clock of the
//!                                    run; a file begins with e 0
//! z                                  the last line: nothing more was written
//! ```
//!
//! A client's transactions are numbered one by one. Versions 1, which has no line n, e or z, and 2, which has no line d, are
//! read as well.
//!
//! A write is noted before anything of it is sent. What is cut off at the end was therefore not sent.

mod lists;
mod number;
mod read;
mod write;

pub use number::{NotAList, list_of};
pub use read::{ReadError, read};
pub use write::HistoryWriter;

/// The version of the format.
const VERSION: &str = "3";

/// The oldest version that is read as well, whose files do not say where they end.
const VERSION_WITHOUT_END: &str = "1";

/// Another older version that is read as well.
const VERSION_BEFORE: &str = "2";

/// Suffix of a history's files: one for each lane, `LANE.history`.
pub const SUFFIX: &str = ".history";
