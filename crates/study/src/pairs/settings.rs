//! The settings of servers that pgrig makes: its own, and those of the sides.

use compare::SIDES;
use lab::Settings;

use crate::error::{Error, SidesError};
use crate::pairs::side::SideOptions;

/// Connections beside the clients': administration.
const SPARE_CONNECTIONS: u32 = 10;

/// The settings of both servers unless the user says otherwise. Two servers share the memory, both have
/// room for all clients, and checkpoints happen between segments. Everything else is the server's
/// default.
pub(crate) fn of_pgrig(clients: u32, memory_bytes: u64) -> Vec<(String, String)> {
    let buffers_mib = (memory_bytes / 8 / (1 << 20)).clamp(32, 8_192);
    let connections = (2 * clients + SPARE_CONNECTIONS).max(100);
    let settings = [
        ("shared_buffers", format!("{buffers_mib}MB")),
        ("max_connections", connections.to_string()),
        ("max_wal_size", "16GB".to_owned()),
        ("checkpoint_timeout", "1d".to_owned()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Has the servers that pgrig will make judge every name and value, and refuses a setting of one side
/// that is the same on the other anyway.
pub(crate) fn check(sides: &[SideOptions; 2]) -> Result<(), Error> {
    if sides.iter().any(|side| side.conninfo.is_some()) {
        return Ok(());
    }
    let mut values = Vec::new();
    for side in sides {
        let installation = lab::find::find(side.bin.as_deref())?;
        let names = sides.iter().flat_map(|side| &side.settings).map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.collect();
        let own: Settings = side.settings.iter().cloned().collect();
        values.push(lab::effective(&installation, &own, &names)?);
    }
    for (index, side) in sides.iter().enumerate() {
        let other = &sides[1 - index].settings;
        for (name, _) in side.settings.iter().filter(|one| !other.contains(one)) {
            let [mine, theirs] = [index, 1 - index].map(|at| values[at].get(name));
            if let (Some(value), true) = (mine, mine == theirs) {
                let (name, value) = (name.clone(), value.clone());
                let side = SIDES[index];
                return Err(SidesError::SameSetting { side, name, value }.into());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_must_change_something() {
        let check = |a: &[(&str, &str)], b: &[(&str, &str)], expected: Result<(), &str>| {
            let side = |list: &[(&str, &str)]| SideOptions {
                settings: list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
                ..SideOptions::default()
            };
            let seen = super::check(&[side(a), side(b)]).map_err(|error| error.to_string());
            match (&seen, expected) {
                (Ok(()), Ok(())) => {}
                (Err(seen), Err(part)) => assert!(seen.contains(part), "{seen}"),
                _ => panic!("{a:?} {b:?}: {seen:?}"),
            }
        };
        check(&[], &[("jit", "off")], Ok(()));
        check(&[], &[("jit", "on")], Err("jit of side B has no effect: it is on on both sides"));
        check(&[("work_mem", "64MB")], &[("work_mem", "65536kB")], Err("work_mem of side A"));
        check(&[("work_mem", "64MB")], &[("work_mem", "64MB"), ("jit", "0")], Ok(()));
        check(&[], &[("work_mem", "much")], Err("invalid value for parameter \"work_mem\""));
        check(&[], &[("no_such", "1")], Err("unrecognized configuration parameter \"no_such\""));
        check(&[], &[("auto_explain.log_min_duration", "1s")], Ok(()));
    }
}
