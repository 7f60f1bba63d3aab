//! The check that restores servers from base backups and a WAL archive.

use crate::action;
use crate::fields::{self, Fields};
use crate::point::TrialPoint;
use crate::topology::Topology;

/// A restore from a base backup and the WAL archive, after the load.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RestoreCheck {
    /// The server whose archive it is; none for the one that the data were built on.
    pub node: Option<String>,
    /// What is restored to, each on a server of its own. Without any, the server itself is restored, from a backup
    /// that was taken before the clients came, to the end of its archive.
    pub to: Vec<RestoreTarget>,
    /// The timelines that the recovery follows.
    pub timeline: RestoreTimeline,
}

/// What a recovery stops at, as PostgreSQL's settings have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RestoreTarget {
    /// `recovery_target_time`: the server's clock at each restore point of the timeline.
    Time,
    /// `recovery_target_lsn`: the position in the WAL at each restore point.
    Lsn,
    /// `recovery_target_name`: each restore point.
    Name,
    /// `recovery_target_xid`: a transaction of the rig's at each restore point.
    Xid,
    /// `recovery_target = immediate`: the end of each backup.
    Immediate,
    /// No target: the end of the archive.
    Latest,
}

/// The timelines that a recovery follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RestoreTimeline {
    /// The newest one of the archive.
    Latest,
    /// That of the backup alone.
    Current,
}

impl RestoreTarget {
    /// The word in study.toml.
    pub fn word(self) -> &'static str {
        let row = TARGETS.iter().find(|(_, target)| *target == self);
        row.map(|(word, _)| *word).expect("each target has a row")
    }

    /// True if it is a restore point of the timeline.
    pub fn is_of_point(self) -> bool {
        !matches!(self, RestoreTarget::Immediate | RestoreTarget::Latest)
    }
}

impl RestoreTimeline {
    /// The value of `recovery_target_timeline`.
    pub fn word(self) -> &'static str {
        match self {
            RestoreTimeline::Latest => "latest",
            RestoreTimeline::Current => "current",
        }
    }
}

impl RestoreCheck {
    /// `"restore"`
    pub(crate) const IN_PLACE: RestoreCheck =
        RestoreCheck { node: None, to: Vec::new(), timeline: RestoreTimeline::Latest };

    /// `{ restore = "primary", to = ["time", "xid"], timeline = "latest" }`
    pub(crate) fn parse(fields: &Fields<'_>, topology: &Topology) -> Option<RestoreCheck> {
        // Its backups and archive are those of a server that is known beforehand.
        let node = action::server(fields, "restore", topology)?;
        if node.follows().is_some() {
            let message = format!(
                "{} is a standby, whose WAL is in the archive of the server that it follows",
                node.name
            );
            let hint = "restore the server that it follows";
            fields.problems.hinted(fields.span(), message, hint);
        }
        let to = fields.list("to").iter();
        let to = to.filter_map(|value| fields::choice("to", value, TARGETS, fields.problems));
        let (node, to) = (Some(node.name.clone()), to.collect::<Vec<_>>());
        let timeline = fields.choice("timeline", TIMELINES);
        if timeline.is_some() && to.is_empty() {
            let message = "timeline: the server itself is restored to the end of its archive";
            fields.problems.hinted(fields.span(), message, "add to = [\"latest\"]");
        }
        Some(RestoreCheck { node, to, timeline: timeline.unwrap_or(RestoreTimeline::Latest) })
    }

    /// Says why there would be nothing to restore to, or nothing to restore from, and what to do.
    pub(crate) fn lacks(&self, point: &TrialPoint) -> Option<(String, &'static str)> {
        let of = |is_it: fn(&action::Action) -> bool| {
            point.timeline.iter().filter(move |entry| is_it(&entry.action))
        };
        let points = of(|action| matches!(action, action::Action::RestorePoint { .. }));
        let backups = of(|action| matches!(action, action::Action::Backup { .. }));
        let first_backup_ms = backups.map(|entry| entry.latest_ms).min();
        let first_point_ms = points.map(|entry| entry.earliest_ms).min();
        let asks = self.to.iter().find(|target| target.is_of_point())?;
        match (first_point_ms, first_backup_ms) {
            (None, _) => Some((
                format!("restore to {}: the timeline has no moment to restore to", asks.word()),
                "add { at = \"5s\", restore_point = NODE } to the timeline",
            )),
            (Some(point), Some(backup)) if point <= backup => Some((
                format!(
                    "restore to {}: the restore point at {} s may be before the first backup, which is begun at {} s",
                    asks.word(),
                    point as f64 / 1e3,
                    backup as f64 / 1e3
                ),
                "move it behind the backup; a timeline without backup has one from before the clients",
            )),
            _ => None,
        }
    }
}

const TARGETS: &[(&str, RestoreTarget)] = &[
    ("time", RestoreTarget::Time),
    ("lsn", RestoreTarget::Lsn),
    ("name", RestoreTarget::Name),
    ("xid", RestoreTarget::Xid),
    ("immediate", RestoreTarget::Immediate),
    ("latest", RestoreTarget::Latest),
];

const TIMELINES: &[(&str, RestoreTimeline)] =
    &[("latest", RestoreTimeline::Latest), ("current", RestoreTimeline::Current)];
