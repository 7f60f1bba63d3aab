//! `target_session_attrs`: which of several servers will do.

use crate::startup::ServerParameters;

/// Kind of server that a session stays with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TargetSessionAttrs {
    /// Anything.
    #[default]
    Any,
    /// Takes writes.
    ReadWrite,
    /// Takes none.
    ReadOnly,
    /// Not in recovery.
    Primary,
    /// In recovery.
    Standby,
    /// In recovery if there is one, else anything.
    PreferStandby,
}

/// Decision about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetDecision {
    /// Stay.
    Accept,
    /// Leave, for this reason (libpq's words), and try the next host.
    Reject(&'static str),
    /// The server is too old to report it: run this query, then see
    /// [`TargetSessionAttrs::judge_answer`].
    Ask(&'static str),
}

impl TargetSessionAttrs {
    pub(super) const WORDS: [(&'static str, Self); 6] = [
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, target)| *target == self).map_or("any", |(word, _)| word)
    }

    /// Kinds of server to look for in each round over the hosts: one round, but two for
    /// `prefer-standby`.
    pub fn rounds(self) -> &'static [Self] {
        match self {
            Self::Any => &[Self::Any],
            Self::ReadWrite => &[Self::ReadWrite],
            Self::ReadOnly => &[Self::ReadOnly],
            Self::Primary => &[Self::Primary],
            Self::Standby => &[Self::Standby],
            Self::PreferStandby => &[Self::Standby, Self::Any],
        }
    }

    /// Judges a server by what it reported at start-up (PostgreSQL 14 and later report both
    /// `in_hot_standby` and `default_transaction_read_only`).
    pub fn judge(self, parameters: &ServerParameters) -> TargetDecision {
        let on = |name| parameters.value(name).map(|value| value == "on");
        let standby = on("in_hot_standby");
        let read_only = on("default_transaction_read_only");
        match self {
            Self::Any | Self::PreferStandby => TargetDecision::Accept,
            Self::ReadWrite | Self::ReadOnly => match (standby, read_only) {
                (Some(standby), Some(read_only)) => self.judge_fact(standby || read_only),
                _ => TargetDecision::Ask("SHOW transaction_read_only"),
            },
            Self::Primary | Self::Standby => match standby {
                Some(standby) => self.judge_fact(standby),
                None => TargetDecision::Ask("SELECT pg_catalog.pg_is_in_recovery()"),
            },
        }
    }

    /// Judges a server by the one value that the query of [`TargetDecision::Ask`] returned.
    pub fn judge_answer(self, value: &[u8]) -> TargetDecision {
        self.judge_fact(matches!(value, b"on" | b"t"))
    }

    fn judge_fact(self, fact: bool) -> TargetDecision {
        match (self, fact) {
            (Self::ReadWrite, true) => TargetDecision::Reject("session is read-only"),
            (Self::ReadOnly, false) => TargetDecision::Reject("session is not read-only"),
            (Self::Primary, true) => TargetDecision::Reject("server is in hot standby mode"),
            (Self::Standby, false) => TargetDecision::Reject("server is not in hot standby mode"),
            _ => TargetDecision::Accept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_judged_by_what_they_report() {
        use TargetDecision::{Accept, Ask, Reject};
        use TargetSessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
        let check = |target: TargetSessionAttrs, reported: &[(&str, &str)], expected| {
            assert_eq!(target.judge(&ServerParameters::reported(reported)), expected, "{target:?}");
        };
        let primary = [("in_hot_standby", "off"), ("default_transaction_read_only", "off")];
        let standby = [("in_hot_standby", "on"), ("default_transaction_read_only", "off")];
        let frozen = [("in_hot_standby", "off"), ("default_transaction_read_only", "on")];
        for reported in [&primary, &standby, &frozen] {
            check(Any, reported, Accept);
            check(PreferStandby, reported, Accept);
        }
        check(ReadWrite, &primary, Accept);
        check(ReadWrite, &standby, Reject("session is read-only"));
        check(ReadWrite, &frozen, Reject("session is read-only"));
        check(ReadOnly, &primary, Reject("session is not read-only"));
        check(ReadOnly, &standby, Accept);
        check(ReadOnly, &frozen, Accept);
        check(Primary, &primary, Accept);
        check(Primary, &standby, Reject("server is in hot standby mode"));
        check(Standby, &frozen, Reject("server is not in hot standby mode"));
        check(Standby, &standby, Accept);
        check(ReadWrite, &[], Ask("SHOW transaction_read_only"));
        check(Standby, &[], Ask("SELECT pg_catalog.pg_is_in_recovery()"));
        assert_eq!(ReadWrite.judge_answer(b"off"), Accept);
        assert_eq!(Primary.judge_answer(b"t"), Reject("server is in hot standby mode"));
        assert_eq!(PreferStandby.rounds(), [Standby, Any]);
    }
}
