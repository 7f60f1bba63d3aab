//! Runs on a live server, beside the real pgbench with the same options.

mod common;

use common::{Ended, Server};

fn initialised() -> Server {
    let server = Server::start(&[]);
    let ended = server.ours("postgres", "-i -q");
    assert_eq!(ended.code, 0, "{ended:?}");
    server
}

/// What programs read: the lines after the version, without ours, every number an N.
fn shape(out: &str) -> Vec<String> {
    let lines = out.lines().skip(1).filter(|line| !line.starts_with("pgrig: "));
    lines.map(|line| without_numbers(line)).collect()
}

fn without_numbers(line: &str) -> String {
    let mut shape = String::new();
    for c in line.chars() {
        let number = c.is_ascii_digit() || (c == '.' && shape.ends_with('N'));
        if !number {
            shape.push(c);
        } else if !shape.ends_with('N') {
            shape.push('N');
        }
    }
    // Columns of figures are padded to a width.
    shape.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_same_shape(line: &str, ours: &Ended, theirs: &Ended) {
    assert_eq!(ours.code, theirs.code, "{line}\n{ours:?}\n{theirs:?}");
    assert_eq!(shape(&ours.out), shape(&theirs.out), "{line}\n{ours:?}");
}

#[test]
fn the_final_block_has_pgbenchs_lines() {
    let server = initialised();
    for line in [
        "-t 5",
        "-S -c 3 -j 2 -t 20",
        "-S -T 1 -n -M extended",
        "-N -c 2 -T 1 -M prepared -P 1",
        "-S -c 2 -t 10 -C -n",
        "-S -t 20 -R 200",
        "-S -t 20 -R 200 -L 100 --failures-detailed --max-tries=3",
        "-t 10 -L 1000",
        "-S -r -t 5",
        "-r -t 5 --max-tries=2 --failures-detailed",
        "-c 2 -T 1 --max-tries=0",
        "-v -t 1",
    ] {
        let (ours, theirs) = (server.ours("postgres", line), server.theirs("postgres", line));
        assert_same_shape(line, &ours, &theirs);
        assert_eq!(ours.code, 0, "{line}\n{ours:?}");
        let narration = |ended: &Ended| -> Vec<String> {
            let lines = ended.err.lines().filter(|line| !line.starts_with("progress"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(narration(&ours), narration(&theirs), "{line}");
    }
}

#[test]
fn every_transaction_is_counted_once() {
    let server = initialised();
    let ended = server.ours("postgres", "-c 4 -j 2 -t 50 -n");
    assert!(
        ended.out.contains("number of transactions actually processed: 200/200\n"),
        "{ended:?}"
    );
    assert_eq!(server.value("postgres", "select count(*) from pgbench_history"), "200");
}
