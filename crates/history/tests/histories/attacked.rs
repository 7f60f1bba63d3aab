//! Faults that a reviewer planted and that "held" once.

use history::file::{HistoryWriter, read};
use history::{
    CycleKind, CycleOrder, FaultKind, History, HistoryFault, HistoryFindings, HistoryWorkload,
    IsolationAnomaly, IsolationLevel, LevelDoubt, LevelJudgement, TransactionOutcome,
};

use crate::written::{judged, names};

const HOLDS: LevelJudgement = LevelJudgement::Holds;
const VIOLATED: LevelJudgement = LevelJudgement::Violated;
const CANNOT: LevelJudgement = LevelJudgement::CannotTell;

fn levels(findings: &HistoryFindings) -> [LevelJudgement; 4] {
    IsolationLevel::ALL.map(|level| findings.judge(level))
}

fn check(lines: &[&str], expected: [LevelJudgement; 4], shows: &[IsolationAnomaly]) {
    let findings = judged(lines);
    let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
    assert_eq!(levels(&findings), expected, "{lines:?}\n{}", words.join("\n"));
    for anomaly in shows {
        assert!(names(&findings).contains(anomaly), "{anomaly}: {lines:?}\n{}", words.join("\n"));
    }
}

#[test]
fn a_register_that_goes_back_in_time_is_not_strictly_serializable() {
    let cycle = |cycle, order| IsolationAnomaly::Cycle(cycle, order);
    let strict = [HOLDS, HOLDS, HOLDS, VIOLATED];
    let stale = ["0 0-1 ok: w1=101", "1 2-3 ok: w1=102", "2 4-5 ok: g1=101"];
    check(&stale, strict, &[cycle(CycleKind::GSingle, CycleOrder::Realtime)]);
    let [one, other] = ["0 0-9 ok: w1=101", "1 0-9 ok: w1=102"];
    // To one client, and to three, one after another.
    let back = [one, other, "2 10-11 ok: g1=102", "2 12-13 ok: g1=101", "2 14-15 ok: g1=102"];
    check(&back, strict, &[IsolationAnomaly::MonotonicReads]);
    let back = [one, other, "2 10-11 ok: g1=102", "3 12-13 ok: g1=101", "4 14-15 ok: g1=102"];
    check(&back, strict, &[]);
    check(
        &[one, "0 10-11 ok: w1=102", "0 12-13 ok: g1=101"],
        strict,
        &[IsolationAnomaly::ReadYourWrites],
    );
    // Reads that began before the last one had ended may be in any order.
    let open = "1 0-30 ok: w1=102";
    let at_once = [one, open, "2 10-21 ok: g1=102", "3 12-23 ok: g1=101", "4 14-25 ok: g1=102"];
    check(&at_once, [HOLDS; 4], &[]);
}

#[test]
fn where_nothing_was_observed_nothing_holds() {
    let cannot = |lines: &[&str], expected: LevelDoubt| {
        let findings = judged(lines);
        assert_eq!(levels(&findings), [CANNOT; 4], "{lines:?}");
        let doubts = findings.doubts(IsolationLevel::ReadCommitted);
        assert_eq!(doubts, [expected], "{lines:?}");
    };
    cannot(&["0 0-1 ok: a1=1"], LevelDoubt::NothingRead { writes: 1 });
    cannot(&["0 0-1 ok: w1=1", "0 2-3 ok: w2=1"], LevelDoubt::NothingRead { writes: 2 });
    // What one has written itself is no observation of another one.
    cannot(&["0 0-1 ok: a1=1 r1=1"], LevelDoubt::NothingRead { writes: 1 });
    cannot(&["0 0-1 ok: w1=1", "1 2-3 ok: g2="], LevelDoubt::NothingRead { writes: 1 });
    cannot(&["0 0-1 ok: r1= g2="], LevelDoubt::NothingRead { writes: 0 });
    cannot(&["0 0-1 ok: s10=3,7", "0 2-3 ok: s10=3,7"], LevelDoubt::NothingMoved);
    let mut lines: Vec<String> = (0..20).map(|at| format!("{at} 0-9 ok: w{at}=1")).collect();
    lines.push("30 10-19 ok: g3=1".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    cannot(&lines, LevelDoubt::FewRead { read: 1, writes: 20 });
    check(&["0 0-1 ok: a1=1", "1 2-3 ok: r1=1"], [HOLDS; 4], &[]);
    // Balances show a wrong sum, and no order of transactions.
    let moved = ["0 0-1 ok: s10=3,7", "0 2-3 ok: s10=4,6"];
    check(&moved, [HOLDS, HOLDS, CANNOT, CANNOT], &[]);
}

#[test]
fn what_was_seen_of_a_transaction_of_unknown_outcome_has_happened() {
    let skew = IsolationAnomaly::Cycle(CycleKind::G2Item, CycleOrder::Data);
    let lost = [HOLDS, VIOLATED, VIOLATED, VIOLATED];
    let lists = ["0 0-9 ?: r1= a1=1", "1 0-9 ok: r1= a1=2", "2 10-11 ok: r1=1,2"];
    check(&lists, lost, &[IsolationAnomaly::LostUpdate]);
    let registers = ["0 0-9 ?: g1= w1=1", "1 0-9 ok: g1= w1=2", "2 0-9 ok: g1=1"];
    check(&registers, lost, &[IsolationAnomaly::LostUpdate]);
    let skewed = [HOLDS, HOLDS, VIOLATED, VIOLATED];
    let lists = ["0 0-9 ?: r1= a2=1", "1 0-9 ok: r2= a1=1", "2 10-11 ok: r1=1 r2=1"];
    check(&lists, skewed, &[skew]);
    let registers = ["0 0-9 ?: g1= w2=1", "1 0-9 ok: g2= w1=1", "2 10-11 ok: g1=1 g2=1"];
    check(&registers, skewed, &[skew]);
    // Seen by one that was seen itself.
    let by_another = ["0 0-9 ?: r1= a2=1", "1 0-9 ?: r2= a1=1 r2=", "2 10-11 ok: r1=1 r2=1"];
    check(&by_another, skewed, &[skew]);
    // Nobody saw it: it may not have happened, or after what its client did next.
    check(&["0 0-9 ?: r1= a1=1", "1 0-9 ok: r1= a1=2", "2 10-11 ok: r1=2"], [HOLDS; 4], &[]);
    check(&["0 0-5 ?: a1=1", "0 6-9 ok: r1=", "1 10-11 ok: r1=1"], [HOLDS; 4], &[]);
}

#[test]
fn a_transaction_sees_what_it_wrote_itself_at_every_level() {
    let unseen = [IsolationAnomaly::OwnWriteUnseen];
    check(&["0 0-9 ok: a1=1 r1="], [VIOLATED; 4], &unseen);
    check(&["0 0-9 ok: w1=1 g1="], [VIOLATED; 4], &unseen);
    check(&["0 0-9 ok: w1=1", "1 0-9 ok: w1=2 g1=1"], [VIOLATED; 4], &unseen);
    check(&["0 0-9 ok: a1=1", "1 10-11 ok: r1= r1=1"], [HOLDS, VIOLATED, VIOLATED, VIOLATED], &[]);
}

/// What a file with these lines is judged, whose first lines tell of a workload and two clients.
fn of_lines(lines: &str, missing: &[&str]) -> [LevelJudgement; 4] {
    let text = format!("history 2\nn 2\ng 0\tp\ti\tw\ne 0\nc 1 0 1 1\nc 2 0 2 1\n{lines}z\n");
    let mut history = History::default();
    read(&mut history, "0.history", text.as_bytes()).unwrap();
    for file in missing {
        let (file, what) = ((*file).to_owned(), FaultKind::FileMissing);
        history.blame(HistoryFault { file, line: 0, what });
    }
    levels(&history::check(&history))
}

#[test]
fn a_line_or_a_file_that_is_lost_is_no_violation() {
    let whole = "b 1 1 10\na 1 5 1\no 1 20\nb 2 1 30\nl 2 5 0 1\no 2 40\n";
    assert_eq!(of_lines(whole, &[]), [HOLDS; 4]);
    assert_eq!(of_lines(whole, &["1.history"]), [CANNOT; 4]);
    let check = |from: &str, to: &str| {
        let lines = whole.replacen(from, to, 1);
        assert_ne!(lines, whole);
        assert_eq!(of_lines(&lines, &[]), [CANNOT; 4], "{lines}");
    };
    check("a 1 5 1\n", "a 1 \u{0}\u{0}\n");
    check("a 1 5 1\n", "a\u{0} 1 5 1\n");
    check("b 1 1 10\na 1 5 1\n", "b 1\u{0}5 1\n");
    check("b 1 1 10\n", "\u{0}\n");
    check("o 1 20\n", "\u{0}\n");
    // A transaction of which no line is left shows by the numbers of the others.
    check("b 1 1 10\na 1 5 1\no 1 20\n", "b 1 2 25\no 1 26\n");
    // A value that nobody wrote is one where nothing is missing.
    let invented = whole.replace("l 2 5 0 1", "l 2 5 0 1 7");
    assert_eq!(of_lines(&invented, &[]), [VIOLATED; 4]);
    let invented = whole.replace("l 2 5 0 1", "r 2 5 7");
    assert_eq!(of_lines(&invented, &[]), [VIOLATED; 4]);
    assert_eq!(of_lines(&invented, &["1.history"]), [CANNOT; 4]);
    // What the other lines show stands.
    let aborted = format!("{whole}b 1 2 50\na 1 6 1\nf 1 60\nb 2 2 70\nl 2 6 0 1\no 2 80\n");
    assert_eq!(of_lines(&aborted, &["1.history"]), [VIOLATED; 4]);
    // Two transactions whose end and beginning are lost are not one.
    let two = "b 1 1 10\na 1 5 1\n\u{0}\na 1 6 1\no 1 60\nb 2 1 5\nl 2 5 0 1\nl 2 6 0\no 2 70\n";
    assert_eq!(of_lines(two, &[]), [CANNOT; 4]);
}

#[test]
fn an_order_of_time_is_one_beyond_the_bounds_of_the_clocks() {
    let check = |bounds: [u64; 2], expected: LevelJudgement, stale: u32| {
        let [one, other] = bounds;
        let lines = format!(
            "e {one}\nb 1 1 10\na 1 5 1\no 1 20\ne {other}\nb 2 1 30\nl 2 5 0\no 2 40\n\
             b 2 2 50\nl 2 5 0 1\no 2 60\n"
        );
        let text = format!("history 2\nn 1\ng 0\tp\ti\tw\nc 1 0 1 1\nc 2 0 2 1\n{lines}z\n");
        let mut history = History::default();
        read(&mut history, "0.history", text.as_bytes()).unwrap();
        let findings = history::check(&history);
        assert_eq!(findings.judge(IsolationLevel::StrictSerializable), expected, "{bounds:?}");
        assert_eq!(findings.staleness[0].lacking(1.0), Some(stale), "{bounds:?}");
    };
    check([0, 0], VIOLATED, 1);
    check([4, 5], VIOLATED, 1);
    check([5, 5], HOLDS, 0);
    check([0, 10], HOLDS, 0);
    // Where the moments of many transactions tell little, that little shows nothing.
    check([0, 5_000_000], HOLDS, 0);
    check([0, 5_000_001], CANNOT, 0);
    check([5_000_001, 0], CANNOT, 0);
    // A line that is lost may have told of a larger bound.
    let lines = "\u{0} 50\nb 1 1 10\na 1 5 1\no 1 20\nb 2 1 30\nl 2 5 0\no 2 40\n";
    assert_eq!(of_lines(lines, &[]), [CANNOT; 4]);
    let lines = "e 0\nb 1 1 10\na 1 5 1\no 1 20\nwhat\nb 2 1 30\nl 2 5 0\no 2 40\n";
    assert_eq!(of_lines(lines, &[]), [CANNOT; 4]);
}

#[test]
fn the_order_of_a_client_counts_within_the_bounds_of_its_clock() {
    // Client 2 saw the append, told client 3 so by one of its own, which does not see the first.
    let lines = "e 50\nb 1 1 10\na 1 5 1\no 1 20\nb 2 1 30\nl 2 5 0 1\no 2 40\nb 2 2 40\na 2 6 2\no 2 50\n\
                 c 3 0 3 1\nb 3 1 300\nl 3 5 0\nl 3 6 0 2\no 3 310\n";
    assert_eq!(of_lines(lines, &[]), [HOLDS, HOLDS, HOLDS, VIOLATED]);
}

#[test]
fn one_hot_list_takes_no_more_room_than_its_longest_read() {
    const APPENDS: i64 = 12_000;
    let group = HistoryWorkload::default();
    let mut history = History::default();
    for file in 0..2 {
        let mut out = HistoryWriter::header([&group], 2);
        let mut recorder = HistoryWriter::default();
        recorder.connected(&mut out, file, 0, 1, 0);
        let mut list: Vec<i64> = Vec::new();
        for number in 1..=APPENDS as u64 {
            let at = number * 10 + u64::from(file);
            recorder.begins(&mut out, file, number, at);
            recorder.has_read_list(&mut out, file, 1, &list);
            if file == 0 {
                recorder.appends(&mut out, file, 1, number as i64);
            }
            recorder.ends(
                &mut out,
                file,
                TransactionOutcome::Committed,
                at + 2 + 7 * u64::from(file),
            );
            list.push(number as i64);
        }
        recorder.finishes(&mut out);
        read(&mut history, &format!("{file}.history"), out.as_slice()).unwrap();
    }
    assert_eq!(history.faults(), []);
    assert_eq!(history.elements_kept(), APPENDS as usize - 1);
    let findings = history::check(&history);
    assert_eq!(levels(&findings), [HOLDS; 4], "{:?}", findings.anomalies);
}

#[test]
fn of_many_appends_that_nobody_read_none_is_overlooked() {
    // Each of forty appends to list 1 after its only read; the last one to end had seen what the
    // reader of list 1 overwrote.
    let mut lines: Vec<String> =
        (1..40).map(|at| format!("{at} 10-{} ok: a1={at}", 20 + at)).collect();
    lines.push("50 10-99 ok: a1=50 r2=".to_owned());
    lines.push("51 10-99 ok: r1= a2=1".to_owned());
    lines.push("52 100-110 ok: r2=1".to_owned());
    lines.extend((0..4).map(|at| format!("60 {}-{} ok: a3={at}", 200 + 4 * at, 202 + 4 * at)));
    lines.push("61 300-310 ok: r3=0,1,2,3".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let findings = judged(&lines);
    assert_ne!(findings.judge(IsolationLevel::Serializable), LevelJudgement::Holds);
}
