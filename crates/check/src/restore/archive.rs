//! What an archive of WAL has between a backup and a target, by the names of its files and the headers of its
//! segments. No server is asked.

use std::collections::BTreeMap;

use lab::ArchivedFile;
use site::WalPlace;

/// The segments and histories of an archive.
#[derive(Debug, Default)]
pub(super) struct WalArchive {
    /// The header of each whole segment, by timeline and number.
    segments: BTreeMap<(u32, u64), Option<PageHeader>>,
    /// The timelines that each one descends from, the oldest first, with the position at which each ended.
    histories: BTreeMap<u32, Vec<(u32, u64)>>,
    /// Bytes of a segment.
    segment_bytes: u64,
}

/// The header of a segment's first page (XLogLongPageHeaderData).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageHeader {
    timeline: u32,
    address: u64,
    system: u64,
}

/// What is wrong with an archive between a backup and a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ArchiveFlaw {
    /// A segment is not there.
    Missing { segment: String },
    /// The first page of a segment is of another timeline or place than its name says, or no page of WAL.
    OtherPlace { segment: String, says: String },
    /// A segment is of another database system.
    OtherSystem { segment: String, system: u64, expected: u64 },
    /// The target is on a timeline that the recovery does not follow.
    TimelineLeft { of_backup: u32, of_target: u32 },
    /// The archive has no history of the target's timeline.
    NoHistory { timeline: u32 },
}

impl ArchiveFlaw {
    /// In a sentence.
    pub(super) fn words(&self) -> String {
        match self {
            ArchiveFlaw::Missing { segment } => {
                format!(
                    "the archive lacks segment {segment}, which is between the backup and the target"
                )
            }
            ArchiveFlaw::OtherPlace { segment, says } => {
                format!("segment {segment} is not what its name says: {says}")
            }
            ArchiveFlaw::OtherSystem { segment, system, expected } => format!(
                "segment {segment} is of the database system {system}, and the backup of {expected}"
            ),
            ArchiveFlaw::TimelineLeft { of_backup, of_target } => format!(
                "the target is on timeline {of_target}, and a recovery with recovery_target_timeline = current follows \
                 timeline {of_backup} alone"
            ),
            ArchiveFlaw::NoHistory { timeline } => {
                format!("the archive has no history of timeline {timeline}, on which the target is")
            }
        }
    }
}

impl WalArchive {
    /// The archive with these files.
    pub(super) fn of(files: &[ArchivedFile]) -> WalArchive {
        let mut archive = WalArchive::default();
        let lengths = files.iter().filter(|file| is_segment(&file.name)).map(|file| file.bytes);
        // One that was cut off is shorter than the others.
        archive.segment_bytes = lengths.max().filter(|bytes| *bytes > 0).unwrap_or(SEGMENT_BYTES);
        for file in files {
            if is_segment(&file.name) {
                if let Some((timeline, number)) = archive.parse(&file.name) {
                    let is_whole = file.bytes == archive.segment_bytes;
                    let header = PageHeader::parse(&file.head).filter(|_| is_whole);
                    archive.segments.insert((timeline, number), header);
                }
            } else if let Some(timeline) = file.name.strip_suffix(".history")
                && let Ok(timeline) = u32::from_str_radix(timeline, 16)
            {
                archive.histories.insert(timeline, history(&String::from_utf8_lossy(&file.head)));
            }
        }
        archive
    }

    /// The end of the last segment of its newest timeline; none of an empty archive.
    pub(super) fn end(&self) -> Option<WalPlace> {
        let (timeline, number) = self.segments.keys().next_back()?;
        Some(WalPlace { timeline: *timeline, lsn: (number + 1) * self.segment_bytes - 1 })
    }

    /// What a recovery meets on its way from the begin of a backup to a target, if it follows all timelines or that of
    /// the backup alone.
    pub(super) fn flaws(
        &self,
        backup: WalPlace,
        system: u64,
        target: WalPlace,
        follows_all: bool,
    ) -> Vec<ArchiveFlaw> {
        if !follows_all && target.timeline != backup.timeline {
            let (of_backup, of_target) = (backup.timeline, target.timeline);
            return vec![ArchiveFlaw::TimelineLeft { of_backup, of_target }];
        }
        let mut flaws = Vec::new();
        let ancestors = match self.histories.get(&target.timeline) {
            Some(ancestors) => ancestors.as_slice(),
            None => {
                if target.timeline != backup.timeline {
                    flaws.push(ArchiveFlaw::NoHistory { timeline: target.timeline });
                }
                &[]
            }
        };
        // Each timeline with the positions from which on and up to which it holds.
        let mut begin = 0;
        let mut spans = Vec::new();
        for (timeline, end) in ancestors {
            spans.push((*timeline, begin, *end));
            begin = *end;
        }
        spans.push((target.timeline, begin, u64::MAX));
        let bytes = self.segment_bytes;
        for number in backup.lsn / bytes..=target.lsn / bytes {
            let first = number * bytes;
            let of = |place: u64| {
                let span = spans.iter().rev().find(|(_, begin, _)| *begin <= place);
                span.map_or(target.timeline, |(timeline, ..)| *timeline)
            };
            // At a switch both timelines have the segment, and the newer one is read.
            let can_be = spans
                .iter()
                .rev()
                .filter(|(_, begin, end)| begin / bytes <= number && *end > first);
            let mut can_be = can_be.map(|(timeline, ..)| *timeline);
            let found =
                can_be.clone().find(|timeline| self.segments.contains_key(&(*timeline, number)));
            let Some(timeline) = found else {
                let timeline = can_be.next().unwrap_or(target.timeline);
                flaws.push(ArchiveFlaw::Missing { segment: self.name(timeline, number) });
                continue;
            };
            let segment = self.name(timeline, number);
            match self.segments[&(timeline, number)] {
                None => {
                    let says = "it is cut off, or does not begin with a page of WAL".to_owned();
                    flaws.push(ArchiveFlaw::OtherPlace { segment, says });
                }
                Some(header) if header.system != system => {
                    let system_of = header.system;
                    flaws.push(ArchiveFlaw::OtherSystem {
                        segment,
                        system: system_of,
                        expected: system,
                    });
                }
                Some(header) if header.timeline != of(first) => {
                    let says = format!(
                        "its first page is of timeline {}, and timeline {} is expected there",
                        header.timeline,
                        of(first)
                    );
                    flaws.push(ArchiveFlaw::OtherPlace { segment, says });
                }
                Some(header) if header.address != first => {
                    let says = format!("its first page is that of position {:X}", header.address);
                    flaws.push(ArchiveFlaw::OtherPlace { segment, says });
                }
                Some(_) => {}
            }
        }
        flaws
    }

    /// The timeline and the number of a segment, counted over all of WAL (`XLogFromFileName`).
    fn parse(&self, name: &str) -> Option<(u32, u64)> {
        let part = |from: usize| u64::from_str_radix(&name[from..from + 8], 16).ok();
        let (timeline, high, low) = (part(0)?, part(8)?, part(16)?);
        let number = high * (WAL_FILE_BYTES / self.segment_bytes) + low;
        Some((u32::try_from(timeline).ok()?, number))
    }

    /// The name of a segment (`XLogFileName`).
    fn name(&self, timeline: u32, number: u64) -> String {
        let in_file = WAL_FILE_BYTES / self.segment_bytes;
        format!("{timeline:08X}{:08X}{:08X}", number / in_file, number % in_file)
    }
}

impl PageHeader {
    fn parse(head: &[u8]) -> Option<PageHeader> {
        let number = |from: usize, bytes: usize| {
            let mut value = [0; 8];
            value[..bytes].copy_from_slice(head.get(from..from + bytes)?);
            Some(u64::from_le_bytes(value))
        };
        // A page of WAL has the number of its format there, which is not zero.
        number(0, 2).filter(|magic| *magic != 0)?;
        Some(PageHeader {
            timeline: u32::try_from(number(4, 4)?).ok()?,
            address: number(8, 8)?,
            system: number(24, 8)?,
        })
    }
}

/// True of the name of a whole segment; neither of a backup's history nor of a part.
fn is_segment(name: &str) -> bool {
    name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The lines of a history: the timeline, the position at which it ended, and why.
fn history(text: &str) -> Vec<(u32, u64)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let timeline = words.next()?.parse().ok()?;
        Some((timeline, WalPlace::parse(timeline, words.next()?)?.lsn))
    };
    text.lines().filter_map(line).collect()
}

/// The `xlogid` of a segment's name counts so many bytes.
const WAL_FILE_BYTES: u64 = 1 << 32;
/// PostgreSQL's own, where the archive has no segment.
const SEGMENT_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn head(timeline: u32, address: u64, system: u64) -> Vec<u8> {
        let mut head = vec![0x10, 0xD1, 2, 0];
        head.extend(timeline.to_le_bytes());
        head.extend(address.to_le_bytes());
        head.extend([0; 8]);
        head.extend(system.to_le_bytes());
        head.extend([0; 8]);
        head
    }

    fn segment(timeline: u32, number: u64, of: u32) -> ArchivedFile {
        let name = format!("{timeline:08X}{:08X}{number:08X}", 0);
        ArchivedFile { name, bytes: MB, head: head(of, number * MB, 7) }
    }

    /// Segments 3 to 6 of timeline 1, which ended in the middle of 6, and 6 to 9 of timeline 2.
    fn two_timelines() -> Vec<ArchivedFile> {
        let mut files: Vec<_> = (3..=6).map(|number| segment(1, number, 1)).collect();
        files.extend((6..=9).map(|number| segment(2, number, if number == 6 { 1 } else { 2 })));
        let history = b"1\t0/680000\tno recovery target specified\n".to_vec();
        let name = "00000002.history".to_owned();
        files.push(ArchivedFile { name, bytes: history.len() as u64, head: history });
        files
    }

    fn place(timeline: u32, segment: u64) -> WalPlace {
        WalPlace { timeline, lsn: segment * MB + 5 }
    }

    fn check(files: &[ArchivedFile], target: WalPlace, all: bool, expected: &[ArchiveFlaw]) {
        let found = WalArchive::of(files).flaws(place(1, 3), 7, target, all);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_whole_archive_has_no_flaw() {
        check(&two_timelines(), place(2, 9), true, &[]);
        check(&two_timelines(), place(1, 6), true, &[]);
        check(&two_timelines(), place(1, 6), false, &[]);
        // The older timeline's part of that segment is enough where the newer one's is not there.
        let mut files = two_timelines();
        files.retain(|file| !file.name.ends_with("06") || file.name.starts_with("00000002"));
        check(&files, place(2, 9), true, &[]);
        assert_eq!(WalArchive::of(&files).end(), Some(WalPlace { timeline: 2, lsn: 10 * MB - 1 }));
    }

    #[test]
    fn a_segment_that_is_missing_is_named() {
        let check_missing = |gone: &str, target: WalPlace, expected: &[&str]| {
            let mut files = two_timelines();
            files.retain(|file| file.name != gone);
            let expected: Vec<_> = expected
                .iter()
                .map(|segment| ArchiveFlaw::Missing { segment: (*segment).to_owned() })
                .collect();
            check(&files, target, true, &expected);
        };
        check_missing("000000010000000000000005", place(2, 9), &["000000010000000000000005"]);
        check_missing("000000020000000000000008", place(2, 9), &["000000020000000000000008"]);
        // It is behind the target.
        check_missing("000000020000000000000009", place(2, 8), &[]);
    }

    #[test]
    fn a_segment_of_another_timeline_place_or_system_is_named() {
        let with = |name: &str, head: Vec<u8>| {
            let mut files = two_timelines();
            files
                .iter_mut()
                .filter(|file| file.name == name)
                .for_each(|file| file.head = head.clone());
            WalArchive::of(&files).flaws(place(1, 3), 7, place(2, 9), true)
        };
        let name = "000000020000000000000008";
        for wrong in [head(1, 8 * MB, 7), head(2, 5 * MB, 7), vec![0; 40], Vec::new()] {
            let found = with(name, wrong);
            assert!(
                matches!(&found[..], [ArchiveFlaw::OtherPlace { segment, .. }] if segment == name),
                "{found:?}"
            );
        }
        let (segment, system, expected) = (name.to_owned(), 8, 7);
        assert_eq!(
            with(name, head(2, 8 * MB, 8)),
            [ArchiveFlaw::OtherSystem { segment, system, expected }]
        );
    }

    #[test]
    fn a_target_on_another_timeline_is_out_of_reach_of_current() {
        let left = ArchiveFlaw::TimelineLeft { of_backup: 1, of_target: 2 };
        check(&two_timelines(), place(2, 9), false, &[left]);
        let mut files = two_timelines();
        files.retain(|file| !file.name.ends_with("history"));
        let found = WalArchive::of(&files).flaws(place(1, 3), 7, place(2, 9), true);
        assert_eq!(found.first(), Some(&ArchiveFlaw::NoHistory { timeline: 2 }));
    }

    #[test]
    fn numbers_of_segments_go_on_beyond_four_gigabytes() {
        let archive = WalArchive { segment_bytes: 16 * MB, ..WalArchive::default() };
        let name = "00000001000000020000000F";
        assert_eq!(archive.parse(name), Some((1, 2 * 256 + 15)));
        assert_eq!(archive.name(1, 2 * 256 + 15), name);
    }
}
