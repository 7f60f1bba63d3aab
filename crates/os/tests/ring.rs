//! A ring on real sockets.

use std::{
    io::{ErrorKind, Read, Write},
    ops::Range,
    os::{fd::AsFd, unix::net::UnixStream},
    time::Duration,
};

use os::ring::{ArrivedKind, IoRing, RingSend};

const A_SECOND: Duration = Duration::from_secs(1);

/// A ring; none where the kernel does not permit it, which the tests cannot help.
fn ring(files: u32) -> Option<IoRing> {
    match IoRing::new(files) {
        Ok(ring) => Some(ring),
        Err(error) => {
            testing::skip::because(format_args!("no io_uring here: {error}"));
            None
        }
    }
}

fn watched(ring: &mut IoRing, count: usize) -> Vec<(UnixStream, UnixStream)> {
    let pair = |file: usize| {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a mode");
        ring.watch(file as u32, ours.as_fd(), file as u64).expect("a watched socket");
        (ours, theirs)
    };
    (0..count).map(pair).collect()
}

/// What has arrived for each of the sockets in one turn: bytes, then the word for an end.
fn arrivals(ring: &mut IoRing, into: &mut [String]) {
    for arrival in ring.take_arrivals() {
        let text = &mut into[arrival.tag as usize];
        match arrival.what {
            ArrivedKind::Bytes(piece) => {
                text.push_str(std::str::from_utf8(ring.bytes(&piece)).expect("text"));
                ring.give_back(piece);
            }
            ArrivedKind::Closed => text.push_str("<closed>"),
            ArrivedKind::Interrupted => text.push_str("<interrupted>"),
            ArrivedKind::Failed(error) => text.push_str(&format!("<{error}>")),
        }
    }
}

#[test]
fn one_turn_sends_to_all_and_takes_what_has_come() {
    let Some(mut ring) = ring(3) else { return };
    let mut pairs = watched(&mut ring, 3);
    let bytes = b"onetwo";
    let sends =
        [(0, 0..3), (2, 3..6)].map(|(file, range): (u32, Range<usize>)| RingSend { file, range });
    pairs[1].1.write_all(b"hello").expect("a write");
    ring.turn(bytes, &sends, A_SECOND).expect("a turn");
    assert_eq!(ring.take_short().len(), 0);
    let mut got = vec![String::new(); 3];
    arrivals(&mut ring, &mut got);
    assert_eq!(got, ["", "hello", ""]);
    let mut heard = [0; 3];
    for (pair, wanted) in [(0, b"one"), (2, b"two")] {
        pairs[pair].1.read_exact(&mut heard).expect("a read");
        assert_eq!(&heard, wanted);
    }
    drop(pairs.remove(0).1);
    ring.turn(&[], &[], A_SECOND).expect("a turn");
    arrivals(&mut ring, &mut got);
    assert_eq!(got, ["<closed>", "hello", ""]);
}

#[test]
fn a_turn_without_arrivals_ends_in_time_or_when_the_other_is_readable() {
    let Some(mut ring) = ring(1) else { return };
    let _pairs = watched(&mut ring, 1);
    ring.turn(&[], &[], Duration::from_millis(1)).expect("a turn");
    assert_eq!(ring.arrivals(), 0);
    let (other, mut writer) = UnixStream::pair().expect("a pair");
    ring.watch_ready(&other).expect("watched");
    writer.write_all(b"!").expect("a write");
    ring.turn(&[], &[], Duration::from_secs(60)).expect("a turn");
    assert!(ring.take_ready());
    assert!(!ring.take_ready());
}

/// More than all buffers hold comes in order, and each socket can be watched again.
#[test]
fn more_than_the_buffers_hold_arrives_whole() {
    let Some(mut ring) = ring(2) else { return };
    let mut pairs = watched(&mut ring, 2);
    let text: String = (0..60_000).map(|number| format!("{number:08}")).collect();
    let mut got = vec![String::new(); 2];
    let (first, second) = pairs.split_at_mut(1);
    std::thread::scope(|scope| {
        for pair in [&mut first[0], &mut second[0]] {
            let bytes = text.as_bytes();
            let writer = &mut pair.1;
            // Eight times 480,000 bytes, while all buffers hold 2 MiB.
            scope.spawn(move || (0..8).for_each(|_| writer.write_all(bytes).expect("a write")));
        }
        let mut kept = Vec::new();
        while got.iter().any(|text| text.len() < 8 * 480_000) {
            ring.turn(&[], &[], A_SECOND).expect("a turn");
            for arrival in ring.take_arrivals() {
                let tag = arrival.tag;
                if arrival.is_last {
                    // Everything is given back late, so that the kernel runs out of buffers.
                    for (tag, piece) in kept.drain(..) {
                        let tag: u64 = tag;
                        let bytes = ring.bytes(&piece).to_vec();
                        got[tag as usize].push_str(&String::from_utf8(bytes).expect("text"));
                        ring.give_back(piece);
                    }
                    ring.watch_again(tag as u32, tag).expect("watched again");
                }
                if let ArrivedKind::Bytes(piece) = arrival.what {
                    kept.push((tag, piece));
                }
            }
            if got.iter().map(String::len).sum::<usize>() + 2 * 1_048_576 > 2 * 8 * 480_000 {
                for (tag, piece) in kept.drain(..) {
                    let bytes = ring.bytes(&piece).to_vec();
                    got[tag as usize].push_str(&String::from_utf8(bytes).expect("text"));
                    ring.give_back(piece);
                }
            }
        }
    });
    for got in got {
        assert!(got == text.repeat(8), "bytes are missing or out of order");
    }
}

#[test]
fn a_send_that_does_not_fit_is_short_and_one_to_nobody_fails() {
    let Some(mut ring) = ring(2) else { return };
    let mut pairs = watched(&mut ring, 2);
    drop(pairs.remove(1).1);
    let bytes = vec![b'x'; 4 << 20];
    let sends = [0, 1].map(|file| RingSend { file, range: 0..bytes.len() });
    ring.turn(&bytes, &sends, A_SECOND).expect("a turn");
    let short = ring.take_short();
    assert_eq!(short.iter().map(|short| short.send).collect::<Vec<_>>(), [0, 1]);
    assert!(short[0].sent.as_ref().is_ok_and(|sent| (1..bytes.len()).contains(sent)));
    assert!(short[1].sent.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe));
}
