//! Foundations and limits of the proof of a ledger. Reports and the manual have these lists; a test compares
//! the manual's.

/// Conditions under which the findings of a ledger are right.
pub const ASSUMES: [&str; 6] = [
    "Nobody but the clients of the ledger writes to its tables.",
    "A script writes the values of the three variables unchanged, and no row of another transaction.",
    "The server says the truth in the tags of statements (INSERT 0 0): a table without its row is then not expected to have it.",
    "A function that writes at times sets ledger_wrote, since its tag is that of a SELECT.",
    "The script leaves client_min_messages alone: a session with a server itself begins with a level that shows warnings; behind a pooler the level is the server's.",
    "The machine of the rig keeps what it was sent: the files of the ledger lie there.",
];

/// Matters that a ledger does not look at.
pub const NEVER_LOOKS_AT: [&str; 7] = [
    "Tables other than the two, and what else the same transactions wrote.",
    "Earlier values of the update table: it holds the last one of each client.",
    "Isolation: what other transactions saw meanwhile. A history does.",
    "What becomes of an unknown transaction after the check.",
    "Rows of a client whose generator was lost, beyond what it had sent home.",
    "Standbys that the check does not name.",
    "Whether somebody who can compute the chain has changed rows on purpose.",
];
