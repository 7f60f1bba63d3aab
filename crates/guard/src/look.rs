//! The state of a primary, as one look shows it.

use tokio_postgres::types::PgLsn;

use server::{Demand, Method, Setting};

/// A position in the WAL.
pub type Lsn = PgLsn;

/// The state of a primary, as one look shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// `synchronous_standby_names`, as it is in force.
    pub setting: Setting,
    /// Position up to which the WAL is flushed on the primary: everything that was acknowledged by
    /// now lies before it.
    pub wal: Lsn,
    /// Its connected standbys.
    pub standbys: Vec<Standby>,
    /// Commits that wait for a standby. Two looks that show the same name show the same wait.
    pub waiting: Vec<String>,
    /// True if the checkpointer, which decides whether commits wait at all, reads new settings at
    /// once: it does not while it syncs the files of a checkpoint.
    pub settings_are_read: bool,
}

/// A row of `pg_stat_replication`.
#[derive(Clone, Debug, PartialEq)]
pub struct Standby {
    /// The WAL sender that serves it: another one after every reconnection.
    pub pid: i32,
    /// Its `application_name`.
    pub name: String,
    /// True if it receives WAL as it is written, rather than catching up.
    pub streams: bool,
    /// Position up to which it has flushed; none for a receiver that does not say.
    pub flush: Option<Lsn>,
    /// Position up to which it has replayed.
    pub replay: Option<Lsn>,
}

/// True if commits are served if only the standbys that `fit` confirm any.
pub fn is_served(demand: &Demand, standbys: &[Standby], fit: impl Fn(&Standby) -> bool) -> bool {
    let candidates = candidates(demand, standbys);
    match demand.method {
        Method::Any => candidates.iter().filter(|one| fit(one)).count() >= demand.count,
        // Those in front are waited for, fit or not.
        Method::First => {
            candidates.len() >= demand.count
                && candidates[..demand.count].iter().all(|one| fit(one))
        }
    }
}

/// Up to where as many standbys as asked for have flushed.
pub fn confirmed(demand: &Demand, standbys: &[Standby]) -> Option<Lsn> {
    let candidates = candidates(demand, standbys).into_iter().filter_map(|one| one.flush);
    let mut flushed: Vec<Lsn> = candidates.collect();
    match demand.method {
        Method::Any => flushed.sort_unstable_by(|a, b| b.cmp(a)),
        Method::First => flushed.truncate(demand.count),
    }
    match demand.method {
        Method::Any => flushed.get(demand.count - 1).copied(),
        Method::First if flushed.len() < demand.count => None,
        Method::First => flushed.into_iter().min(),
    }
}

/// The standbys that the server would choose from, in their order.
fn candidates<'a>(demand: &Demand, standbys: &'a [Standby]) -> Vec<&'a Standby> {
    let listed = standbys.iter().filter(|one| one.streams && one.flush.is_some());
    let mut listed: Vec<(usize, &Standby)> =
        listed.filter_map(|one| Some((demand.priority(&one.name)?, one))).collect();
    listed.sort_by_key(|(priority, _)| *priority);
    listed.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standby(name: &str, flush: u64) -> Standby {
        let flush = Some(Lsn::from(flush));
        Standby { pid: 0, name: name.to_owned(), streams: true, flush, replay: flush }
    }

    #[test]
    fn standbys_serve_and_confirm_as_the_server_counts() {
        let deaf = Standby { flush: None, ..standby("a", 0) };
        let behind = Standby { streams: false, ..standby("a", 9) };
        let check = |setting: &str, standbys: &[Standby], served: bool, flushed: Option<u64>| {
            let Setting::Sync(demand) = setting.parse().unwrap() else { panic!() };
            // Standbys called x are connected and mute.
            assert_eq!(is_served(&demand, standbys, |one| one.flush > Some(Lsn::from(1))), served);
            assert_eq!(confirmed(&demand, standbys), flushed.map(Lsn::from), "{setting}");
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
    }
}
