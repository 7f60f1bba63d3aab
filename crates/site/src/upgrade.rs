//! A node's data by pg_upgrade, and what it asks for afterwards.

use std::time::Instant;

use lab::{Error, Node, StopMode, UpgradeMode, UpgradeReport};

/// An upgrade of a server's data.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteUpgrade {
    /// What pg_upgrade took and said.
    pub report: UpgradeReport,
    /// Duration from the end of the upgrade until the planner had all statistics, in seconds; none where nobody gives them.
    pub statistics_s: Option<f64>,
}

/// From this version on pg_upgrade keeps statistics, and vacuumdb makes only those that are missing.
const KEPT_SINCE: u32 = 18;

/// Upgrades the data of `from` into `node`, and has vacuumdb do what pg_upgrade asks for. Both are stopped afterwards.
pub(crate) fn upgrade(
    node: &mut Node,
    from: &Node,
    mode: UpgradeMode,
    analyzes: bool,
) -> Result<SiteUpgrade, Error> {
    let report = node.upgrade_data(from, mode)?;
    let mut done = SiteUpgrade { report, statistics_s: None };
    if analyzes {
        let began = Instant::now();
        node.start()?;
        let asked: &[&[&str]] = match node.installation().version().major >= KEPT_SINCE {
            true => &[&["--analyze-in-stages", "--missing-stats-only"], &["--analyze-only"]],
            false => &[&["--analyze-in-stages"]],
        };
        for words in asked {
            let (code, _, err) = node.run_client("vacuumdb", words, &[])?;
            if code != Some(0) {
                let (node, why) = (node.name().to_owned(), "vacuumdb after pg_upgrade".to_owned());
                return Err(Error::Upgrade { node, why, log: err.trim().to_owned() });
            }
        }
        done.statistics_s = Some(began.elapsed().as_secs_f64());
        node.stop(StopMode::Fast)?;
    }
    Ok(done)
}
