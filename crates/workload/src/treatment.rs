//! Rules for statements that a load leaves out, keeps or replaces: utility commands and functions with effects beside
//! the rows that they return.

use pg_query::NodeEnum;

/// A command that no script has, by its name alone: its text may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtilityCommand {
    /// The command, as PostgreSQL's manual calls it.
    pub command: String,
    /// The reason for leaving it out.
    pub why: LeftOut,
}

/// Why a load leaves a statement out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum LeftOut {
    /// SET, DISCARD, LISTEN.
    #[error("changes the session and no data; a script's sessions keep one state")]
    SessionState,
    /// DECLARE, FETCH, CLOSE, MOVE.
    #[error(
        "a cursor: its rows are read by several statements of one transaction, which the source does not join"
    )]
    Cursor,
    /// COPY.
    #[error("copies data from or to a client; the data are not in the source")]
    Copy,
    /// DO.
    #[error("a block of code, whose text may hold anything; write it as a script of your own")]
    Code,
    /// EXPLAIN.
    #[error("explains a statement; what it explains stands in the source where it runs by itself")]
    Explain,
    /// DDL, VACUUM.
    #[error(
        "changes the schema or maintains it; run it beside the load if it belongs to the question"
    )]
    Maintenance,
    /// PREPARE TRANSACTION, COMMIT PREPARED.
    #[error("two-phase commit: its names are given by a transaction manager")]
    TwoPhase,
    /// LOCK, pg_advisory_lock.
    #[error("takes a lock for another statement's sake; which one is not in the source")]
    Lock,
    /// pg_sleep.
    #[error("waits on purpose")]
    Sleep,
    /// pg_notify, NOTIFY.
    #[error("notifies other sessions, which a load has not")]
    Notify,
    /// dblink.
    #[error("runs on another server")]
    OtherServer,
    /// pg_terminate_backend, files, large objects, settings of the server.
    #[error("acts on the server, its files or other sessions")]
    Server,
    /// currval, setval.
    #[error("depends on or changes the state of a sequence in this session")]
    Sequence,
}

impl UtilityCommand {
    pub(crate) fn two_phase() -> UtilityCommand {
        UtilityCommand { command: "two-phase commit".to_owned(), why: LeftOut::TwoPhase }
    }
}

/// The name of a command, from its tree or the first words of its text, which are keywords: everything that a user
/// has named or written comes later.
pub(crate) fn command_name(node: &NodeEnum, text: &str) -> UtilityCommand {
    let (command, why) = match node {
        NodeEnum::CreateRoleStmt(_) => ("CREATE ROLE", LeftOut::Maintenance),
        NodeEnum::AlterRoleStmt(_) | NodeEnum::AlterRoleSetStmt(_) => {
            ("ALTER ROLE", LeftOut::Maintenance)
        }
        NodeEnum::VariableSetStmt(_) => ("SET", LeftOut::SessionState),
        NodeEnum::VariableShowStmt(_) => ("SHOW", LeftOut::SessionState),
        NodeEnum::DiscardStmt(_) => ("DISCARD", LeftOut::SessionState),
        NodeEnum::DeallocateStmt(_) => ("DEALLOCATE", LeftOut::SessionState),
        NodeEnum::ListenStmt(_) => ("LISTEN", LeftOut::SessionState),
        NodeEnum::UnlistenStmt(_) => ("UNLISTEN", LeftOut::SessionState),
        NodeEnum::ConstraintsSetStmt(_) => ("SET CONSTRAINTS", LeftOut::SessionState),
        NodeEnum::NotifyStmt(_) => ("NOTIFY", LeftOut::Notify),
        NodeEnum::DeclareCursorStmt(_) => ("DECLARE", LeftOut::Cursor),
        NodeEnum::FetchStmt(_) => ("FETCH", LeftOut::Cursor),
        NodeEnum::ClosePortalStmt(_) => ("CLOSE", LeftOut::Cursor),
        NodeEnum::CopyStmt(_) => ("COPY", LeftOut::Copy),
        NodeEnum::DoStmt(_) => ("DO", LeftOut::Code),
        NodeEnum::ExplainStmt(_) => ("EXPLAIN", LeftOut::Explain),
        NodeEnum::LockStmt(_) => ("LOCK", LeftOut::Lock),
        NodeEnum::VacuumStmt(_) => ("VACUUM or ANALYZE", LeftOut::Maintenance),
        NodeEnum::TruncateStmt(_) => ("TRUNCATE", LeftOut::Maintenance),
        NodeEnum::CommentStmt(_) => ("COMMENT", LeftOut::Maintenance),
        NodeEnum::CreateStmt(_) | NodeEnum::CreateTableAsStmt(_) => {
            ("CREATE TABLE", LeftOut::Maintenance)
        }
        NodeEnum::AlterSystemStmt(_) => ("ALTER SYSTEM", LeftOut::Server),
        NodeEnum::CheckPointStmt(_) => ("CHECKPOINT", LeftOut::Server),
        NodeEnum::LoadStmt(_) => ("LOAD", LeftOut::Server),
        _ => return UtilityCommand { command: first_word(text), why: LeftOut::Maintenance },
    };
    UtilityCommand { command: command.to_owned(), why }
}

/// The keyword with which a command begins.
fn first_word(text: &str) -> String {
    // What cannot be read has no keyword, and is another command.
    let tokens = pg_query::scan_tokens(text).unwrap_or_default();
    let keyword = tokens.iter().find(|token| token.keyword_kind != 0);
    let bytes = keyword.and_then(|token| {
        text.get(usize::try_from(token.start).ok()?..usize::try_from(token.end).ok()?)
    });
    bytes.map_or_else(|| "another command".to_owned(), str::to_uppercase)
}

/// Why a statement that calls this function is left out; nothing for one that is kept.
pub(crate) fn of_function(name: &str) -> Option<LeftOut> {
    Some(match name {
        "pg_sleep" | "pg_sleep_for" | "pg_sleep_until" => LeftOut::Sleep,
        "pg_advisory_lock"
        | "pg_advisory_lock_shared"
        | "pg_try_advisory_lock"
        | "pg_try_advisory_lock_shared"
        | "pg_advisory_unlock"
        | "pg_advisory_unlock_shared"
        | "pg_advisory_unlock_all" => LeftOut::Lock,
        "set_config" => LeftOut::SessionState,
        "pg_notify" => LeftOut::Notify,
        "currval" | "lastval" | "setval" => LeftOut::Sequence,
        "pg_terminate_backend"
        | "pg_cancel_backend"
        | "pg_reload_conf"
        | "pg_switch_wal"
        | "pg_promote"
        | "pg_backup_start"
        | "pg_backup_stop"
        | "pg_start_backup"
        | "pg_stop_backup"
        | "pg_stat_statements_reset"
        | "pg_stat_reset"
        | "pg_logical_slot_get_changes"
        | "pg_replication_slot_advance" => LeftOut::Server,
        _ if name.starts_with("dblink") => LeftOut::OtherServer,
        _ if name.starts_with("lo_")
            || name.starts_with("pg_read_")
            || name.starts_with("pg_ls_") =>
        {
            LeftOut::Server
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_effects_have_a_rule() {
        let check = |name: &str, expected| assert_eq!(of_function(name), expected, "{name}");
        check("pg_sleep", Some(LeftOut::Sleep));
        check("pg_advisory_lock", Some(LeftOut::Lock));
        check("pg_advisory_xact_lock", None);
        check("nextval", None);
        check("set_config", Some(LeftOut::SessionState));
        check("pg_notify", Some(LeftOut::Notify));
        check("dblink_exec", Some(LeftOut::OtherServer));
        check("lower", None);
    }
}
