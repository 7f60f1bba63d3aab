//! The options of initdb of the sides.

use lab::{Installation, Lab, LabConfig, NodeConfig, Settings};
use measure::SIDES;
use spec::InitdbOption;

use crate::error::{Error, SidesError};
use crate::pairs::side::SideOptions;

/// Has initdb of each side judge its options, and refuses those that make no difference between the sides.
pub(super) fn check(
    sides: &[SideOptions; 2],
    installations: &[Option<Installation>; 2],
) -> Result<(), Error> {
    if sides.iter().all(|side| side.initdb.is_empty()) {
        return Ok(());
    }
    let mut made = Vec::new();
    for ((side, name), installation) in sides.iter().zip(SIDES).zip(installations) {
        let properties = |one| properties(one, name, &side.initdb);
        made.push(installation.as_ref().map(properties).transpose()?);
    }
    let are_alike = installations[0] == installations[1] && made[0] == made[1];
    match sides[0].initdb != sides[1].initdb && are_alike {
        true => Err(SidesError::SameInitdb.into()),
        false => Ok(()),
    }
}

/// The properties that these options give a data directory.
pub(super) fn properties(
    installation: &Installation,
    side: &str,
    options: &[InitdbOption],
) -> Result<Option<String>, Error> {
    let lab = Lab::open(LabConfig::new(installation.clone()))?;
    let settings = Settings::from_iter([("shared_buffers", "16MB"), ("fsync", "off")]);
    let initdb = options.iter().map(ToString::to_string).collect();
    let mut node = lab.node(side, NodeConfig { initdb, ..NodeConfig::new(settings) })?;
    node.init()?;
    node.start()?;
    Ok(node.value(PROPERTIES)?)
}

/// Settings of the server that nothing but initdb decides, and the locale of databases.
const PROPERTIES: &str = "
    SELECT string_agg(name || '=' || setting, ' ' ORDER BY name)
        || (SELECT to_jsonb(d) - ARRAY['oid', 'datfrozenxid', 'datminmxid']
            FROM pg_database d WHERE datname = 'template0')::text
    FROM pg_settings
    WHERE context = 'internal' OR name ~ '^lc_' OR name = 'default_text_search_config'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_initdb_must_change_something() {
        let installation = lab::find::find(None).expect("the tests need an installed PostgreSQL");
        let installations = [Some(installation.clone()), Some(installation)];
        let side = |words: &[&str]| SideOptions {
            initdb: words.iter().map(|word| InitdbOption::parse(word).unwrap()).collect(),
            ..SideOptions::default()
        };
        let check = |a: &[&str], b: &[&str], expected: Result<(), &str>| {
            let seen = super::check(&[side(a), side(b)], &installations);
            match (&seen.map_err(|error| error.to_string()), expected) {
                (Ok(()), Ok(())) => {}
                (Err(seen), Err(part)) => assert!(seen.contains(part), "{a:?} {b:?}: {seen}"),
                (seen, _) => panic!("{a:?} {b:?}: {seen:?}"),
            }
        };
        check(&[], &["--lc-ctype=C.UTF-8"], Ok(()));
        check(&[], &["--wal-segsize=16"], Err("initdb makes the same data directory for A and B"));
        check(&["--wal-segsize=3"], &[], Err("initialising node A: initdb"));
    }
}
