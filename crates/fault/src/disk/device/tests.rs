//! A replayed state against a live cut.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crash::{DiskLog, DiskState, FlushEffect, LostSectors, StateCursor};
use proptest::prelude::*;

use super::*;
use crate::disk::medium::{ImagePatch, write_image};

const SIZE: usize = 64 * 4096;

#[derive(Debug, Clone)]
enum Step {
    Write { sector: u64, sectors: usize, byte: u8 },
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..400_u64, 1..24_usize, 1..=255_u8);
    prop::option::weighted(0.85, write).prop_map(|step| match step {
        Some((sector, sectors, byte)) => Step::Write { sector, sectors, byte },
        None => Step::Flush,
    })
}

/// The state in which a cut by this seed leaves what the log has pending.
fn state_of_cut(log: &DiskLog, contents: &File, seed: u64, sector_bytes: usize) -> DiskState {
    let cut = log.entries.len();
    let pending = FlushEffect::Honest.pending(log, cut);
    let mut cache = Cache::default();
    let each = |write: usize| log.entries[write].pieces().iter();
    for piece in pending.iter().copied().flat_map(each) {
        let content = log.contents[piece.content as usize];
        let mut data = vec![0; usize::from(piece.sectors) * 512];
        contents.read_exact_at(&mut data, content.position).unwrap();
        assert!(cache.write(piece.block * 4096 + u64::from(piece.first) * 512, &data));
    }
    cache.cut(seed, sector_bytes);
    let survivors: Vec<_> = cache
        .pieces()
        .map(|piece| piece.offset / 512..(piece.offset + piece.data.len() as u64) / 512)
        .collect();
    let mut lost = Vec::new();
    for write in pending {
        let mut number = 0;
        for piece in log.entries[write].pieces() {
            for index in 0..u64::from(piece.sectors) {
                let sector = piece.block * 8 + u64::from(piece.first) + index;
                if !survivors.iter().any(|range| range.contains(&sector)) {
                    lost.push(LostSectors { write, sectors: number..number + 1 });
                }
                number += 1;
            }
        }
    }
    DiskState { cut, lost }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_replayed_state_is_the_image_that_a_live_cut_left(
        before in prop::collection::vec(step(), 0..10),
        steps in prop::collection::vec(step(), 0..40),
        seed: u64,
        sector_bytes in prop::sample::select(vec![512_usize, 1024, 4096, 8192]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let image = File::options().read(true).write(true).create_new(true).open(path("image")).unwrap();
        image.set_len(SIZE as u64).unwrap();
        let medium = DurableMedium::Image(image);
        let device = Device::new(medium, sector_bytes, false, path("log")).unwrap();
        let act = |step: &Step| match step {
            Step::Write { sector, sectors, byte } => {
                device.state().write(sector * 512, &vec![*byte; sectors * 512]).unwrap();
            }
            Step::Flush => device.state().flush().unwrap(),
        };
        before.iter().for_each(act);
        device.obey(Order::Record { max_bytes: 1 << 30, copies_image: true }).unwrap();
        steps.iter().for_each(act);
        let status = device.obey(Order::Cut { seed }).unwrap();
        device.obey(Order::Close).unwrap();
        let mut contents = File::create_new(path("contents")).unwrap();
        let mut file = BufReader::new(File::open(path("log")).unwrap());
        let log = DiskLog::read(&mut file, &mut contents).unwrap();
        // A flush has a beginning and an end.
        let flushes = steps.iter().filter(|step| matches!(step, Step::Flush)).count();
        prop_assert_eq!(log.entries.len(), steps.len() + flushes);
        let contents = File::open(path("contents")).unwrap();
        let state = state_of_cut(&log, &contents, seed, sector_bytes);
        prop_assert!(status.dropped == 0 || !state.lost.is_empty());
        let mut patch = ImagePatch::default();
        patch.add(&StateCursor::new(&log, FlushEffect::Honest).overlay(&state), &path("contents"));
        patch.write(&path("patch")).unwrap();
        write_image(&path("base"), &path("patch"), &path("replayed")).unwrap();
        let (live, replayed) = (std::fs::read(path("image")), std::fs::read(path("replayed")));
        prop_assert!(live.unwrap() == replayed.unwrap());
    }
}

#[test]
fn a_log_that_does_not_fit_says_what_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let image =
        File::options().read(true).write(true).create_new(true).open(path("image")).unwrap();
    image.set_len(SIZE as u64).unwrap();
    let device = Device::new(DurableMedium::Image(image), 512, false, path("log")).unwrap();
    device.obey(Order::Record { max_bytes: 10_000, copies_image: false }).unwrap();
    for block in 0..60_u64 {
        // What cannot be compressed.
        let data: Vec<u8> = (0..4096).map(|at| stats::mix(block * 4096 + at) as u8).collect();
        device.state().write(block * 4096, &data).unwrap();
    }
    let status = device.obey(Order::Close).unwrap();
    assert!((60 * 4096..70 * 4096).contains(&status.logged), "{status:?}");
    assert!(std::fs::metadata(path("log")).unwrap().len() <= 10_000);
}

/// A server runs on the disk when its log begins.
#[test]
fn what_is_flushed_while_the_log_begins_is_in_the_copy_or_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let blocks = 8192_u64;
    let image =
        File::options().read(true).write(true).create_new(true).open(path("image")).unwrap();
    image.set_len(blocks * 4096).unwrap();
    let device = Device::new(DurableMedium::Image(image), 512, false, path("log")).unwrap();
    let number = AtomicU64::new(0);
    let write = || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let mut state = device.state();
        // Each block in turn, far apart.
        state.write(number * 97 % blocks * 4096, &number.to_le_bytes().repeat(512)).unwrap();
        state.flush().unwrap();
    };
    (0..blocks).for_each(|_| write());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                write();
            }
        });
        device.obey(Order::Record { max_bytes: 1 << 30, copies_image: true }).unwrap();
        (0..100).for_each(|_| write());
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    device.obey(Order::Close).unwrap();
    let mut contents = File::create_new(path("contents")).unwrap();
    let log = DiskLog::read(&mut BufReader::new(File::open(path("log")).unwrap()), &mut contents)
        .unwrap();
    let state = DiskState { cut: log.entries.len(), lost: Vec::new() };
    let mut patch = ImagePatch::default();
    patch.add(&StateCursor::new(&log, FlushEffect::Honest).overlay(&state), &path("contents"));
    patch.write(&path("patch")).unwrap();
    write_image(&path("base"), &path("patch"), &path("replayed")).unwrap();
    let (image, replayed) = (std::fs::read(path("image")), std::fs::read(path("replayed")));
    assert!(image.unwrap() == replayed.unwrap());
}

#[test]
fn requests_of_some_blocks_fail_so_many_times_or_until_it_is_healed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let image =
        File::options().read(true).write(true).create_new(true).open(path("image")).unwrap();
    image.set_len(SIZE as u64).unwrap();
    let device = Device::new(DurableMedium::Image(image), 512, false, path("log")).unwrap();
    std::fs::write(path(FAILING), "2 3\n8 8\n").unwrap();
    let write = |block: u64, blocks: usize| {
        device.state().write(block * 4096, &vec![1; blocks * 4096]).is_ok()
    };
    let fail = |what: RequestKind, times: u64, has_blocks: bool| {
        device.obey(Order::FailSome { what, error: DiskError::Broken, times, has_blocks }).unwrap();
    };
    fail(RequestKind::Write, 2, true);
    let done = [write(0, 2), write(1, 2), write(4, 4), write(7, 2), write(2, 1)];
    // The third one that would fail is done.
    assert_eq!(done, [true, false, true, false, true]);
    fail(RequestKind::Write, 0, true);
    assert_eq!([write(2, 1), write(3, 1), write(8, 1), write(9, 1)], [false, false, false, true]);
    let status = device.obey(Order::Heal).unwrap();
    assert_eq!(status.failed, 5);
    assert!(write(2, 1));
    fail(RequestKind::Read, 1, true);
    let read = |block: u64| device.state().read(block * 4096, 4096).is_ok();
    assert_eq!([read(0), read(3), read(3)], [true, false, true]);
    fail(RequestKind::Flush, 1, false);
    assert!(device.state().flush().is_err() && device.state().flush().is_ok());
    // A flush is about what it makes durable.
    fail(RequestKind::Flush, 2, true);
    let flush_of = |block: u64| write(block, 1) && device.state().flush().is_ok();
    assert_eq!([flush_of(0), flush_of(3), flush_of(4)], [true, false, false]);
    assert!(flush_of(3));
}
