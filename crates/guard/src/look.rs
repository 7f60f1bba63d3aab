//! The state of a primary, as one look shows it.

use serde::Deserialize;
use tokio_postgres::types::PgLsn;

use server::{StandbyDemand, SyncMethod, SyncStandbysSetting};

/// A position in the WAL.
pub type Lsn = PgLsn;

/// The state of a primary, as one look shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimaryState {
    /// `synchronous_standby_names`, as it is in force.
    pub setting: SyncStandbysSetting,
    /// Time at which the server has read its configuration last, in its words.
    pub loaded_at: String,
    /// Position up to which the WAL is flushed on the primary: everything that was acknowledged by
    /// now lies before it, and so does each commit in `waiting`.
    pub wal: Lsn,
    /// The connected standbys.
    pub standbys: Vec<WalSenderRow>,
    /// Commits that wait for a standby. Two looks that show the same name show the same wait.
    pub waiting: Vec<String>,
    /// True if the checkpointer, which decides whether commits wait at all, reads new settings at
    /// once: it does not while it syncs the files of a checkpoint.
    pub settings_are_read: bool,
}

/// A row of `pg_stat_get_wal_senders()`.
#[derive(Clone, Debug, PartialEq)]
pub struct WalSenderRow {
    /// The WAL sender that serves it: another one after every reconnection.
    pub pid: i32,
    /// The `application_name`.
    pub name: String,
    /// True if it receives WAL as it is written, rather than catching up.
    pub streams: bool,
    /// Position up to which it has flushed; none for a receiver that does not say.
    pub flush: Option<Lsn>,
    /// Position up to which it has replayed.
    pub replay: Option<Lsn>,
    /// The part in the setting in force, as the server says.
    pub sync_state: SyncState,
}

/// `sync_state` of a standby: its part in the setting in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncState {
    /// No commit waits for it.
    Async,
    /// It takes the place of a standby before it that fails.
    Potential,
    /// Commits wait for it.
    Sync,
    /// Commits wait for a number of such ones.
    Quorum,
}

impl PrimaryState {
    /// True if commits go on under the setting in force if only the standbys that `fit` confirm any.
    /// The server's own choice counts: among standbys of one priority it goes by their WAL senders'
    /// places in shared memory, which nobody else sees.
    pub fn is_served(&self, fit: impl Fn(&WalSenderRow) -> bool) -> bool {
        let SyncStandbysSetting::Sync(demand) = &self.setting else { return true };
        let mut chosen = self.chosen();
        match demand.method {
            SyncMethod::Any => chosen.filter(|one| fit(one)).count() >= demand.count,
            SyncMethod::First => self.chosen().count() >= demand.count && chosen.all(fit),
        }
    }

    /// Up to where as many standbys as the setting in force asks for have flushed.
    pub fn confirmed(&self) -> Option<Lsn> {
        self.reached(|one| one.flush)
    }

    /// Up to where as many standbys as the setting in force asks for have replayed: commits of `remote_apply` wait for
    /// that.
    pub fn applied(&self) -> Option<Lsn> {
        self.reached(|one| one.replay)
    }

    /// The position that as many standbys as the setting in force asks for have reached, each by one of its positions.
    fn reached(&self, position: impl Fn(&WalSenderRow) -> Option<Lsn>) -> Option<Lsn> {
        let SyncStandbysSetting::Sync(demand) = &self.setting else { return None };
        let reached: Vec<Lsn> = self.chosen().filter_map(position).collect();
        match demand.method {
            SyncMethod::Any => nth_greatest(reached, demand.count),
            SyncMethod::First if reached.len() < demand.count => None,
            SyncMethod::First => reached.into_iter().min(),
        }
    }

    /// The standbys that commits wait for.
    fn chosen(&self) -> impl Iterator<Item = &WalSenderRow> {
        let is_chosen = |one: &&WalSenderRow| {
            let is_sync = matches!(one.sync_state, SyncState::Sync | SyncState::Quorum);
            is_sync && one.streams && one.flush.is_some()
        };
        self.standbys.iter().filter(is_chosen)
    }
}

/// True if commits would certainly go on under a setting that is not in force if only the standbys
/// that `fit` confirmed any. Which of the standbys of one priority the server would choose is not
/// known: all of them must fit where it would have to choose.
pub(crate) fn would_serve(
    demand: &StandbyDemand,
    standbys: &[WalSenderRow],
    fit: impl Fn(&WalSenderRow) -> bool,
) -> bool {
    let candidates = candidates(demand, standbys);
    match demand.method {
        SyncMethod::Any => candidates.iter().filter(|one| fit(one)).count() >= demand.count,
        // Those in front are waited for, fit or not.
        SyncMethod::First => {
            candidates.len() >= demand.count && possible(demand, standbys).into_iter().all(fit)
        }
    }
}

/// Up to where as many standbys as a setting that is not in force asks for have certainly flushed.
pub(crate) fn would_confirm(demand: &StandbyDemand, standbys: &[WalSenderRow]) -> Option<Lsn> {
    let candidates = candidates(demand, standbys);
    if candidates.len() < demand.count {
        return None;
    }
    match demand.method {
        SyncMethod::Any => {
            nth_greatest(candidates.iter().filter_map(|one| one.flush).collect(), demand.count)
        }
        SyncMethod::First => possible(demand, standbys).iter().filter_map(|one| one.flush).min(),
    }
}

fn nth_greatest(mut flushed: Vec<Lsn>, number: usize) -> Option<Lsn> {
    flushed.sort_unstable_by(|a, b| b.cmp(a));
    flushed.get(number.checked_sub(1)?).copied()
}

/// The standbys of a `FIRST` list that the server may choose: those in front, and all that have the
/// priority of the last of them.
fn possible<'a>(demand: &StandbyDemand, standbys: &'a [WalSenderRow]) -> Vec<&'a WalSenderRow> {
    let candidates = candidates(demand, standbys);
    let priority = |one: &WalSenderRow| demand.priority(&one.name);
    let last = candidates.get(demand.count.saturating_sub(1)).map(|one| priority(one));
    candidates.into_iter().filter(|one| last.is_none_or(|last| priority(one) <= last)).collect()
}

/// The standbys that the server would choose from, by their priority.
fn candidates<'a>(demand: &StandbyDemand, standbys: &'a [WalSenderRow]) -> Vec<&'a WalSenderRow> {
    let listed = standbys.iter().filter(|one| one.streams && one.flush.is_some());
    let mut listed: Vec<(usize, &WalSenderRow)> =
        listed.filter_map(|one| Some((demand.priority(&one.name)?, one))).collect();
    listed.sort_by_key(|(priority, _)| *priority);
    listed.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standby(name: &str, flush: u64) -> WalSenderRow {
        let (flush, sync_state) = (Some(Lsn::from(flush)), SyncState::Async);
        WalSenderRow {
            pid: 0,
            name: name.to_owned(),
            streams: true,
            flush,
            replay: flush,
            sync_state,
        }
    }

    #[test]
    fn standbys_would_serve_and_confirm_as_the_server_counts() {
        let deaf = WalSenderRow { flush: None, ..standby("a", 0) };
        let behind = WalSenderRow { streams: false, ..standby("a", 9) };
        let check =
            |setting: &str, standbys: &[WalSenderRow], served: bool, flushed: Option<u64>| {
                let SyncStandbysSetting::Sync(demand) = setting.parse().unwrap() else { panic!() };
                // Standbys that have flushed up to 1 are connected and mute.
                let fit = |one: &WalSenderRow| one.flush > Some(Lsn::from(1));
                assert_eq!(would_serve(&demand, standbys, fit), served, "{setting}");
                assert_eq!(would_confirm(&demand, standbys), flushed.map(Lsn::from), "{setting}");
            };
        check("a", &[], false, None);
        check("a", &[standby("a", 5)], true, Some(5));
        check("a", &[standby("other", 5)], false, None);
        check("a", &[deaf], false, None);
        check("a", &[behind], false, None);
        check("FIRST 1 (a, b)", &[standby("b", 7), standby("a", 5)], true, Some(5));
        check("FIRST 1 (a, b)", &[standby("b", 7), standby("a", 1)], false, Some(1));
        check("FIRST 2 (a, b, c)", &[standby("b", 7), standby("c", 5)], true, Some(5));
        check("FIRST 2 (a, b, c)", &[standby("b", 7)], false, None);
        check("ANY 1 (a, b)", &[standby("b", 7), standby("a", 1)], true, Some(7));
        check(
            "ANY 2 (a, b, c)",
            &[standby("a", 9), standby("b", 7), standby("c", 1)],
            true,
            Some(7),
        );
        check("ANY 2 (*)", &[standby("x", 3)], false, None);
        // The server may choose either of two with one priority, wherever it stands in the rows.
        check("*", &[standby("x", 7), standby("y", 1)], false, Some(1));
        check("*", &[standby("x", 1), standby("y", 7)], false, Some(1));
        check("ANY 1 (*)", &[standby("x", 1), standby("y", 7)], true, Some(7));
        check("a, *", &[standby("a", 7), standby("x", 1)], true, Some(7));
        check("2 (a, *)", &[standby("a", 7), standby("x", 5), standby("y", 1)], false, Some(1));
        // An old connection of one that has come back lingers.
        check("a, b", &[standby("a", 1), standby("a", 9), standby("b", 9)], false, Some(1));
        check("a, b", &[standby("a", 9), standby("a", 1), standby("b", 9)], false, Some(1));
        check("ANY 1 (a, b)", &[standby("a", 1), standby("a", 9)], true, Some(9));
    }

    #[test]
    fn what_is_in_force_is_read_from_the_servers_choice() {
        use SyncState::{Async, Potential, Quorum, Sync};
        let check = |setting: &str, standbys: &[(u64, SyncState)], served, flushed: Option<u64>| {
            let rows = standbys.iter().map(|(flush, sync_state)| WalSenderRow {
                sync_state: *sync_state,
                ..standby("x", *flush)
            });
            let look = PrimaryState {
                setting: setting.parse().unwrap(),
                loaded_at: String::new(),
                wal: Lsn::from(9),
                standbys: rows.collect(),
                waiting: Vec::new(),
                settings_are_read: true,
            };
            let fit = |one: &WalSenderRow| one.flush > Some(Lsn::from(1));
            assert_eq!(look.is_served(fit), served, "{setting} {standbys:?}");
            assert_eq!(look.confirmed(), flushed.map(Lsn::from), "{setting} {standbys:?}");
        };
        check("*", &[(9, Potential), (1, Sync)], false, Some(1));
        check("*", &[(9, Sync), (1, Potential)], true, Some(9));
        check("*", &[(9, Potential), (9, Async)], false, None);
        check("2 (*)", &[(9, Sync), (7, Sync), (1, Potential)], true, Some(7));
        check("2 (*)", &[(9, Sync), (7, Async)], false, None);
        check("ANY 1 (*)", &[(9, Quorum), (1, Quorum)], true, Some(9));
        check("ANY 2 (*)", &[(9, Quorum), (1, Quorum)], false, Some(1));
        check("", &[], true, None);
    }
}
