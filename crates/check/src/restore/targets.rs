//! What servers are restored to: each target with the settings of its recovery, the backup to begin with, and the
//! bounds of its moment.

use lab::Settings;
use site::{ArchiveEnd, ClockInterval, RestorePoint, RestoreSources, TakenBackup, WalPlace};
use spec::{RestoreCheck, RestoreTarget};

/// A target of a recovery.
#[derive(Debug)]
pub(super) struct WantedTarget<'r> {
    /// In words, as in `time 2026-01-01 12:00:00+00`.
    pub(super) words: String,
    /// The settings of the recovery.
    pub(super) recovery: Settings,
    /// When that was.
    pub(super) moment: ClockInterval,
    /// The place in the WAL up to which the archive is needed; none for that of the backup.
    pub(super) place: Option<WalPlace>,
    /// The backup to begin with; none where each ended later.
    pub(super) backup: Option<&'r TakenBackup>,
}

/// All targets of a check, with those of the archive of `owner`. `end` is the end of the archive, if a server took
/// writes then.
pub(super) fn targets<'r>(
    restore: &RestoreCheck,
    owner: &str,
    restorable: &'r RestoreSources,
    end: Option<(&ArchiveEnd, WalPlace)>,
) -> Vec<WantedTarget<'r>> {
    let backups: Vec<&TakenBackup> =
        restorable.backups.iter().filter(|backup| backup.archive_of == owner).collect();
    let before = |moment: ClockInterval| {
        let ended = backups.iter().copied().filter(|one| one.taken.latest <= moment.earliest);
        ended.max_by_key(|backup| backup.taken.latest)
    };
    let follows = restore.timeline.word();
    let settings = |target: &[(&str, &str)]| -> Settings {
        let always = [("recovery_target_timeline", follows), ("recovery_target_action", "promote")];
        always.iter().chain(target).copied().collect()
    };
    let mut all = Vec::new();
    for is in restore.to.iter().copied() {
        match is {
            RestoreTarget::Immediate => all.extend(backups.iter().map(|backup| WantedTarget {
                words: "immediate, the end of its backup".to_owned(),
                recovery: settings(&[("recovery_target", "immediate")]),
                moment: backup.taken,
                place: None,
                backup: Some(backup),
            })),
            RestoreTarget::Latest => all.extend(end.map(|(end, place)| WantedTarget {
                words: "latest, the end of the archive".to_owned(),
                recovery: settings(&[]),
                moment: end.completed,
                place: Some(place),
                backup: before(end.completed),
            })),
            _ => {
                let points = restorable.points.iter().filter(|point| point.archive_of == owner);
                all.extend(points.filter_map(|point| {
                    let (setting, value, moment) = of_point(is, point)?;
                    Some(WantedTarget {
                        words: format!("{} {value}", is.word()),
                        recovery: settings(&[(setting, value)]),
                        moment,
                        place: Some(point.end),
                        backup: before(moment),
                    })
                }));
            }
        }
    }
    all
}

/// The setting of a target that is a restore point, its value, and the bounds of its moment; none for another target.
fn of_point(
    is: RestoreTarget,
    point: &RestorePoint,
) -> Option<(&'static str, &str, ClockInterval)> {
    Some(match is {
        RestoreTarget::Time => ("recovery_target_time", &point.time.0, point.time.1.read),
        RestoreTarget::Lsn => ("recovery_target_lsn", &point.lsn.0, point.lsn.1),
        RestoreTarget::Name => ("recovery_target_name", &point.name.0, point.name.1),
        RestoreTarget::Xid => ("recovery_target_xid", &point.xid.0, point.xid.1),
        RestoreTarget::Immediate | RestoreTarget::Latest => return None,
    })
}
