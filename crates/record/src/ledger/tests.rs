//! The checker against histories that are drawn and databases that are falsified.

use proptest::prelude::*;

use super::*;
use crate::Moment;

const SEED: u64 = 42;

/// A ledger's file in which each client's transactions end so, one letter each, `-` for one whose
/// outcome was never noted, `n` for one that wrote nothing, `i` and `p` for one that wrote into the insert or
/// the update table alone, `2` for two rows in the insert table, `l` where the connection was lost, `!` where
/// its generator was; client 0 first. Transaction s of a client begins at 10 s and ends at
/// 10 s + 5 seconds.
fn file(clients: &[&str]) -> Vec<u8> {
    let mut text = header_line(SEED).into_bytes();
    for (client, outcomes) in (0..).zip(clients) {
        let mut seq = 0;
        for letter in outcomes.chars() {
            seq += u64::from(!matches!(letter, 'l' | '!'));
            let mut write = |at: u64, what| {
                LedgerEntry { client, seq, at: Moment(at * 1_000_000_000), what }.write(&mut text);
            };
            if letter == 'l' {
                write(seq * 10 + 6, LedgerKnowledge::Disconnected);
                continue;
            }
            if letter == '!' {
                continue;
            }
            write(seq * 10, LedgerKnowledge::Intended);
            let mut wrote = |insert, update| {
                write(seq * 10 + 5, LedgerKnowledge::Wrote(LedgerWrite { insert, update }));
                write(seq * 10 + 5, LedgerKnowledge::Acknowledged);
            };
            match letter {
                'i' => wrote(1, false),
                'p' => wrote(0, true),
                '2' => wrote(2, true),
                'n' => write(seq * 10 + 5, LedgerKnowledge::WroteNothing),
                'a' => write(seq * 10 + 5, LedgerKnowledge::Acknowledged),
                'w' => write(seq * 10 + 5, LedgerKnowledge::AcknowledgedAlone),
                'f' => write(seq * 10 + 5, LedgerKnowledge::Failed(Some(*b"40001"))),
                'e' => write(seq * 10 + 5, LedgerKnowledge::Failed(None)),
                'u' => write(seq * 10 + 5, LedgerKnowledge::Unknown),
                _ => {}
            }
        }
        if !outcomes.contains('!') {
            let at = Moment(seq * 10_000_000_000 + 9_000_000_000);
            LedgerEntry { client, seq, at, what: LedgerKnowledge::Ended }.write(&mut text);
        }
    }
    text
}

fn ledger(clients: &[&str]) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.add("0.ledger", &file(clients)).unwrap();
    ledger
}

/// The row that a transaction of a client writes.
fn row(ledger: &Ledger, client: u32, seq: u64) -> LedgerRow {
    let chain = ledger.client(client).unwrap()[seq as usize - 1].chain;
    LedgerRow { client: Some(client.into()), seq: Some(seq as i64), chain: Some(chain) }
}

fn rows(ledger: &Ledger, of: &[(u32, &[u64])]) -> Vec<LedgerRow> {
    let of = of.iter().flat_map(|(client, seqs)| seqs.iter().map(|seq| (*client, *seq)));
    of.map(|(client, seq)| row(ledger, client, seq)).collect()
}

fn seconds(s: u64) -> Moment {
    Moment(s * 1_000_000_000)
}

/// Findings by kind: `lost 2, hole 1`.
fn kinds(findings: &LedgerFindings) -> String {
    let found = LedgerAnomaly::ALL.into_iter().filter(|anomaly| findings.count(*anomaly) > 0);
    let found = found.map(|anomaly| format!("{} {}", anomaly.word(), findings.count(anomaly)));
    found.collect::<Vec<_>>().join(", ")
}

#[test]
fn every_anomaly_of_an_insert_table_is_found_and_nothing_else() {
    let check = |outcomes: &str, present: &[u64], expected: &str| {
        let ledger = ledger(&[outcomes]);
        let rows = LedgerRows { insert: Some(rows(&ledger, &[(0, present)])), update: None };
        let findings = check(&ledger, &rows, &[]);
        assert_eq!(kinds(&findings), expected, "{outcomes} with {present:?}");
        let first = findings.examples.first().map(ToString::to_string);
        assert!(first.is_none_or(|text| text.contains("client 0 seq")), "{findings:?}");
    };
    check("aaa", &[1, 2, 3], "");
    check("", &[], "");
    check("afea", &[1, 4], "");
    check("aau", &[1, 2], "");
    check("aau", &[1, 2, 3], "");
    check("aua-", &[1, 3, 4], "");
    check("aaa", &[1, 2], "lost 1");
    check("aaa", &[], "lost 3");
    check("aaa", &[1, 3], "lost 1, hole 1");
    // What is lost before the connection is, is no hole in what comes after it.
    check("aaula", &[1, 4], "lost 1");
    check("laala", &[1, 3], "lost 1");
    check("aaula", &[2, 4], "lost 1, hole 1");
    check("afa", &[1, 2, 3], "failed, but present 1");
    check("aaa", &[1, 2, 2, 3, 3, 3], "doubled 3");
}

#[test]
fn what_a_transaction_did_not_write_is_not_lost() {
    let check = |outcomes: &str, inserted: &[u64], held: &[u64], expected: &str| {
        let ledger = ledger(&[outcomes]);
        let insert = Some(rows(&ledger, &[(0, inserted)]));
        let rows = LedgerRows { insert, update: Some(rows(&ledger, &[(0, held)])) };
        assert_eq!(
            kinds(&check(&ledger, &rows, &[])),
            expected,
            "{outcomes}: {inserted:?} {held:?}"
        );
    };
    check("ana", &[1, 3], &[3], "");
    check("an", &[1], &[1], "");
    // Its statements do not tell what they write.
    check("an", &[1, 2], &[2], "");
    check("ai", &[1, 2], &[1], "");
    check("ai", &[1], &[1], "lost 1");
    check("ap", &[1], &[2], "");
    check("ap", &[1], &[1], "lost 1");
    check("ip", &[1], &[2], "");
    check("ipa", &[1], &[2], "lost 1");
    check("a2", &[1, 2, 2], &[2], "");
    check("a2", &[1, 2, 2, 2], &[2], "doubled 1");
    check("ai", &[], &[], "lost 2");
}

/// Of a client whose generator was lost, what arrived is judged, and nothing else.
#[test]
fn a_client_that_is_cut_off_has_lost_what_it_was_told_and_invented_nothing() {
    let check = |clients: &[&str],
                 known: &[&str],
                 inserted: &[(u32, &[u64])],
                 expected: (&str, u64, u64)| {
        let (all, ledger) = (ledger(clients), ledger(known).of_clients(0..clients.len() as u32));
        let held = inserted.iter().filter_map(|(client, seqs)| Some((*client, *seqs.last()?)));
        let update: Vec<LedgerRow> = held.map(|(client, seq)| row(&all, client, seq)).collect();
        let rows = LedgerRows { insert: Some(rows(&all, inserted)), update: Some(update) };
        let found = check(&ledger, &rows, &[]);
        let found = (kinds(&found), found.unjudged, found.unjudged_rows);
        assert_eq!(
            found,
            (expected.0.to_owned(), expected.1, expected.2),
            "{known:?} {inserted:?}"
        );
    };
    let all = ["aaaa", "aaaa"];
    check(&all, &["aaaa", "aaaa"], &[(0, &[1, 2, 3, 4]), (1, &[1, 2, 3, 4])], ("", 0, 0));
    // Two rows and the one of the update table came after the last entry that arrived.
    check(&all, &["aaaa", "aa!"], &[(0, &[1, 2, 3, 4]), (1, &[1, 2, 3, 4])], ("", 1, 3));
    // Nothing arrived of the second one.
    check(&all, &["aaaa"], &[(0, &[1, 2, 3, 4]), (1, &[1, 2, 3, 4])], ("", 1, 5));
    // What it was told is lost all the same, and what the other one was told.
    check(&all, &["aaaa", "aa!"], &[(0, &[1, 2, 3, 4]), (1, &[1, 3, 4])], ("lost 1", 1, 3));
    check(&all, &["aaaa", "aa!"], &[(0, &[1, 2, 3]), (1, &[1, 2])], ("lost 1", 1, 0));
    check(&all, &["aaaa", "a-!"], &[(0, &[1, 2, 3, 4]), (1, &[1])], ("", 1, 0));
}

#[test]
fn every_anomaly_of_an_update_table_is_found_and_nothing_else() {
    let check = |outcomes: &str, held: &[u64], expected: &str| {
        let ledger = ledger(&[outcomes]);
        let rows = LedgerRows { insert: None, update: Some(rows(&ledger, &[(0, held)])) };
        assert_eq!(kinds(&check(&ledger, &rows, &[])), expected, "{outcomes} with {held:?}");
    };
    check("aaa", &[3], "");
    check("ffu", &[], "");
    check("aauf", &[2], "");
    check("aauf", &[3], "");
    check("auaf", &[3], "");
    check("aaa", &[1], "lost 2");
    check("aaa", &[], "lost 3");
    check("auaa", &[2], "lost 2");
    check("aaf", &[3], "failed, but present 1");
    check("aaa", &[3, 2], "doubled 1");
}

#[test]
fn rows_that_were_not_intended_or_with_another_value_are_found() {
    let ledger = ledger(&["aa", "au"]);
    let all = rows(&ledger, &[(0, &[1, 2]), (1, &[1])]);
    let kinds_with = |client: Option<i64>, seq: Option<i64>, chain: Option<i64>| {
        let mut insert = all.clone();
        insert.push(LedgerRow { client, seq, chain });
        kinds(&check(&ledger, &LedgerRows { insert: Some(insert), update: None }, &[]))
    };
    for (client, seq) in [(7, 1), (0, 3), (0, 0), (0, -1), (-1, 1), (1 << 33, 1)] {
        assert_eq!(kinds_with(Some(client), Some(seq), Some(5)), "invented 1", "{client} {seq}");
    }
    assert_eq!(kinds_with(None, Some(1), None), "invented 1");
    assert_eq!(kinds_with(Some(1), None, None), "invented 1");
    assert_eq!(kinds_with(Some(1), Some(2), None), "broken 1");
    assert_eq!(kinds_with(Some(1), Some(2), Some(5)), "broken 1");
    // Another load's row of the same client and number.
    let mut other = Ledger::default();
    let text = String::from_utf8(file(&["aa", "au"])).unwrap().replace("seed 42", "seed 43");
    other.add("0.ledger", text.as_bytes()).unwrap();
    let foreign = row(&other, 1, 2);
    assert_eq!(kinds_with(foreign.client, foreign.seq, foreign.chain), "broken 1");
}

#[test]
fn rows_as_the_study_made_them_are_no_anomaly_of_an_update_table() {
    let ledger = ledger(&["uu", "a"]);
    let blank = |client| LedgerRow { client: Some(client), seq: Some(0), chain: None };
    let mut update = vec![blank(0), row(&ledger, 1, 1), blank(2)];
    let findings = check(&ledger, &LedgerRows { insert: None, update: Some(update.clone()) }, &[]);
    assert_eq!(kinds(&findings), "");
    update[1] = blank(1);
    let findings = check(&ledger, &LedgerRows { insert: None, update: Some(update.clone()) }, &[]);
    assert_eq!(kinds(&findings), "lost 1");
    update.push(blank(2));
    let findings = check(&ledger, &LedgerRows { insert: None, update: Some(update) }, &[]);
    assert_eq!(kinds(&findings), "lost 1, doubled 1");
}

#[test]
fn two_tables_must_end_alike() {
    let ledger = ledger(&["aau", "aa"]);
    let check = |first: &[u64], held: u64, expected: &str| {
        let insert = rows(&ledger, &[(0, first), (1, &[1, 2])]);
        let update = rows(&ledger, &[(0, &[held]), (1, &[2])]);
        let rows = LedgerRows { insert: Some(insert), update: Some(update) };
        let findings = check(&ledger, &rows, &[]);
        assert_eq!(kinds(&findings), expected, "{first:?} and {held}");
    };
    check(&[1, 2], 2, "");
    check(&[1, 2, 3], 3, "");
    check(&[1, 2], 3, "torn 1");
    check(&[1, 2, 3], 2, "torn 1");
    // One that neither or only one of the two tables holds is lost once.
    check(&[1], 1, "lost 1");
    check(&[1, 2], 1, "lost 1, torn 1");
}

#[test]
fn a_loss_is_classed_by_who_acknowledged_it_and_measured() {
    let ledger = ledger(&["awaaaa", "aaa"]);
    let rows = LedgerRows { insert: Some(rows(&ledger, &[(0, &[1]), (1, &[1, 3])])), update: None };
    let findings = check(&ledger, &rows, &[]);
    assert_eq!((findings.acknowledged, findings.acknowledged_alone), (9, 1));
    assert_eq!((findings.lost, findings.lost_alone, findings.lost_max_run), (6, 1, 5));
    assert_eq!(findings.lost_span, Some((seconds(25), seconds(65))));
    // Transaction 4 is under way from 40 to 45 s, 5 from 50 to 55 s.
    let lost_alone = |from, until| {
        let window = UncoveredCommits { from: seconds(from), until: seconds(until) };
        check(&ledger, &rows, &[window]).lost_alone
    };
    assert_eq!(lost_alone(44, 51), 3, "2 with its warning, 4 and 5");
    assert_eq!(lost_alone(46, 49), 1, "between two transactions");
    assert_eq!(lost_alone(46, 60), 3);
    let text = findings.examples[0].to_string();
    assert_eq!(
        text,
        "lost: client 0 seq 2 at 25.000000 s: expected what was acknowledged by the primary \
         alone, found no row in the insert table, the client's last there is 1"
    );
    let of_one = check(&ledger.of_clients(1..2), &LedgerRows::default(), &[]);
    assert_eq!((of_one.intended, of_one.lost), (3, 0), "what writes no table loses nothing");
}

/// Client 0 is acknowledged at 15, 25, 55 and 65 s, client 1 at 15 and 35 s.
#[test]
fn the_longest_pause_is_one_of_all_clients_together() {
    let all = ledger(&["aaufaa", "afa"]);
    let check = |ledger: &Ledger, from, until, expected| {
        let pause = ledger.longest_pause_ns(seconds(from), seconds(until));
        assert_eq!(Moment(pause), seconds(expected), "from {from} to {until}");
    };
    check(&all, 10, 70, 20);
    check(&all.of_clients(0..1), 10, 70, 30);
    // What lies before and behind is not looked at, and a pause may reach to both ends.
    check(&all, 40, 50, 10);
    check(&all, 60, 90, 25);
    check(&Ledger::default(), 1, 8, 7);
}

#[test]
fn only_the_first_examples_are_kept_and_all_are_counted() {
    let ledger = ledger(&["a".repeat(1_000).as_str()]);
    let findings = check(&ledger, &LedgerRows { insert: Some(Vec::new()), update: None }, &[]);
    assert_eq!((findings.lost, findings.examples.len()), (1_000, LedgerFindings::EXAMPLES));
    let mut sum = findings.clone();
    sum.merge(&findings);
    assert_eq!((sum.lost, sum.intended, sum.lost_max_run), (2_000, 2_000, 1_000));
    assert_eq!(sum.anomalies(), 2_000);
}

#[test]
fn what_only_one_scan_gives_is_found() {
    let ledger = ledger(&["aaaa"]);
    let all = rows(&ledger, &[(0, &[1, 2, 3, 4])]);
    let check = |first: &[usize], second: &[usize], expected: u64| {
        let pick = |of: &[usize]| of.iter().map(|i| all[*i]).collect::<Vec<_>>();
        let mut findings = LedgerFindings::default();
        findings.compare_scans("log", &mut pick(first), &mut pick(second));
        assert_eq!(findings.scan_differences, expected, "{first:?} {second:?}");
    };
    check(&[0, 1, 2, 3], &[3, 2, 1, 0], 0);
    check(&[0, 1, 2, 3], &[0, 1, 3], 1);
    check(&[0, 3], &[0, 3, 3], 1);
    check(&[], &[1], 1);
    check(&[0, 2], &[1, 3], 4);
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_read_as_far_as_it_goes() {
    let text = file(&["afwu", "aa"]);
    let whole = ledger(&["afwu", "aa"]);
    for end in 0..=text.len() {
        let mut ledger = Ledger::default();
        ledger.add("3.ledger", &text[..end]).unwrap();
        let is_torn = end > 0 && text[end - 1] != b'\n';
        assert_eq!(ledger.torn().is_empty(), !is_torn, "{end}");
        for (client, history) in ledger.clients() {
            let all = whole.client(client).unwrap();
            let last = history.len() - 1;
            assert_eq!(history[..last], all[..last], "all but the last one is as it was");
            assert_eq!(history[last].chain, all[last].chain);
        }
    }
}

#[test]
fn what_cannot_have_happened_is_named_with_its_line() {
    let check = |text: &str, expected: &str| {
        let (line, why) = Ledger::default().add("0.ledger", text.as_bytes()).unwrap_err();
        assert_eq!(format!("{line}: {why}"), expected, "{text:?}");
    };
    let head = "ledger 2 seed 42\n";
    check("i 1 1 5\n", "1: it does not begin as a ledger does");
    check("ledger 5 seed 42\n", "1: the ledger has format 5, this pgrig reads 2 to 4");
    check("ledger 1 seed 42\n", "1: the ledger has format 1, this pgrig reads 2 to 4");
    check(&format!("{head}p 1 1 5 1 2\n"), "2: \"p 1 1 5 1 2\" is no entry of a ledger");
    check(&format!("{head}i 1 1 5\ne 1 2 6\n"), "3: client 1 ends after 2, its last was 1");
    check("ledger 2 seed x\n", "1: \"x\" is no seed");
    check(&format!("{head}i 1 2 5\n"), "2: client 1 intends 2, its last was 0");
    check(&format!("{head}a 1 1 5\n"), "2: client 1 has no open transaction 1");
    check(&format!("{head}i 1 1 5\na 1 1 6\nf 1 1 7\n"), "4: client 1 has no open transaction 1");
    for line in ["x 1 1 5", "i 1 1", "i 1 1 5 5", "f 1 1 5 4000", "i -1 1 5", "", "i  1 1 5"] {
        check(&format!("{head}{line}\n"), &format!("2: \"{line}\" is no entry of a ledger"));
    }
    let mut ledger = Ledger::default();
    ledger.add("0.ledger", b"ledger 2 seed 42\ni 1 1 5\n").unwrap();
    let (_, why) = ledger.add("1.ledger", b"ledger 2 seed 42\ni 1 1 5\n").unwrap_err();
    assert_eq!(why, "client 1 stands in two ledgers");
}

/// Histories of up to six clients.
fn histories() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[aaaaawfeu]{0,30}-?", 1..6)
}

/// Rows of a database after a crash that kept each client's first `kept` committed transactions:
/// the acknowledged ones, and of the unknown ones those that `lucky` says.
fn after_crash(ledger: &Ledger, kept: &[usize], lucky: u64) -> LedgerRows {
    let (mut insert, mut update) = (Vec::new(), Vec::new());
    for (client, history) in ledger.clients() {
        let committed = (1..).zip(history).filter(|(seq, transaction)| match transaction.outcome {
            LedgerOutcome::Failed => false,
            LedgerOutcome::Unknown => lucky >> ((seq + u64::from(client)) % 64) & 1 == 1,
            _ => true,
        });
        let committed: Vec<u64> = committed.map(|(seq, _)| seq).collect();
        let kept = kept.get(client as usize).copied().unwrap_or(usize::MAX);
        let kept = &committed[..committed.len().min(kept)];
        insert.extend(kept.iter().map(|seq| row(ledger, client, *seq)));
        update.extend(kept.last().map(|seq| row(ledger, client, *seq)));
    }
    LedgerRows { insert: Some(insert), update: Some(update) }
}

proptest! {
    #[test]
    fn a_database_that_kept_everything_passes(histories in histories(), lucky: u64) {
        let ledger = ledger(&histories.iter().map(String::as_str).collect::<Vec<_>>());
        let findings = check(&ledger, &after_crash(&ledger, &[], lucky), &[]);
        prop_assert_eq!(kinds(&findings), "");
        let known = findings.acknowledged + findings.failed + findings.unknown;
        prop_assert_eq!(findings.intended, known);
        prop_assert_eq!(findings.present, findings.acknowledged + findings.unknown_present);
    }

    #[test]
    fn a_crash_that_keeps_a_prefix_of_each_client_loses_and_does_nothing_else(
        histories in histories(),
        kept in proptest::collection::vec(0_usize..30, 6),
        lucky: u64,
    ) {
        let ledger = ledger(&histories.iter().map(String::as_str).collect::<Vec<_>>());
        let rows = after_crash(&ledger, &kept, lucky);
        let findings = check(&ledger, &rows, &[]);
        prop_assert_eq!(findings.anomalies(), findings.lost);
        prop_assert_eq!(findings.holes, 0);
        let insert = rows.insert.as_ref().unwrap();
        let is_there = |client: u32, seq: u64| insert.contains(&row(&ledger, client, seq));
        let mut lost = 0;
        for (client, history) in ledger.clients() {
            for (seq, transaction) in (1..).zip(history) {
                let is_acknowledged = transaction.outcome.is_acknowledged();
                lost += u64::from(is_acknowledged && !is_there(client, seq));
            }
        }
        prop_assert_eq!(findings.lost, lost);
    }

    #[test]
    fn whatever_is_falsified_is_found(
        histories in histories(),
        lucky: u64,
        which: prop::sample::Index,
        how in 0..6,
        by in 1_i64..,
        in_update: bool,
    ) {
        let ledger = ledger(&histories.iter().map(String::as_str).collect::<Vec<_>>());
        let mut rows = after_crash(&ledger, &[], lucky);
        let table = if in_update { &mut rows.update } else { &mut rows.insert };
        let table = table.as_mut().unwrap();
        prop_assume!(!table.is_empty());
        let index = which.index(table.len());
        let LedgerRow { client, seq, chain } = table[index];
        let transactions = ledger.client(client.unwrap() as u32).unwrap();
        let outcome = transactions[seq.unwrap() as usize - 1].outcome;
        match how {
            0 => {
                // An unknown one may be missing.
                prop_assume!(outcome.is_acknowledged());
                table.remove(index);
            }
            1 => table[index].chain = chain.map(|chain| chain.wrapping_add(by)),
            2 => table[index].seq = seq.map(|seq| seq.wrapping_add(by)),
            3 => table[index].client = client.map(|client| client.wrapping_add(by)),
            4 => table.push(table[index]),
            _ => table.push(LedgerRow { client, seq: Some(1 + transactions.len() as i64), chain }),
        }
        prop_assert!(check(&ledger, &rows, &[]).anomalies() > 0);
    }

    #[test]
    fn an_entry_is_read_as_it_was_written(
        client: u32, seq: u64, at: u64, kind in 0..7,
    ) {
        let what = [
            LedgerKnowledge::Intended,
            LedgerKnowledge::Acknowledged,
            LedgerKnowledge::AcknowledgedAlone,
            LedgerKnowledge::Failed(None),
            LedgerKnowledge::Failed(Some(*b"XX000")),
            LedgerKnowledge::Unknown,
            LedgerKnowledge::Disconnected,
        ][kind as usize];
        let entry = LedgerEntry { client, seq, at: Moment(at), what };
        let mut line = Vec::new();
        entry.write(&mut line);
        let text = std::str::from_utf8(&line).unwrap();
        prop_assert_eq!(super::entry::LedgerEntry::parse(text.trim_end_matches('\n')), Ok(entry));
    }

    #[test]
    fn as_of_a_moment_is_what_the_file_said_by_then(
        histories in prop::collection::vec("[awfeul]{0,12}", 1..4),
        at_s in 0..140_u64,
    ) {
        let clients: Vec<&str> = histories.iter().map(String::as_str).collect();
        let whole = ledger(&clients);
        // Every line has its moment behind the sequence number.
        let text = String::from_utf8(file(&clients)).unwrap();
        let by_then = text.lines().filter(|line| {
            let moment = line.split(' ').nth(3).and_then(|word| word.parse::<u64>().ok());
            line.starts_with("ledger") || moment.is_some_and(|at| at <= at_s * 1_000_000_000)
        });
        let by_then: String = by_then.flat_map(|line| [line, "\n"]).collect();
        let mut expected = Ledger::default();
        expected.add("0.ledger", by_then.as_bytes()).unwrap();
        let found = whole.as_of(Moment(at_s * 1_000_000_000));
        for (client, history) in found.clients() {
            let expected = expected.client(client).unwrap_or_default();
            prop_assert_eq!(history.len(), expected.len());
            for (found, expected) in history.iter().zip(expected) {
                prop_assert_eq!(found.outcome, expected.outcome);
                prop_assert_eq!(found.chain, expected.chain);
            }
        }
    }

    #[test]
    fn the_chain_of_the_file_is_the_chain_of_the_client(history in "[aaawfeu]{1,40}") {
        let ledger = ledger(&[&history]);
        let mut chain = HashChain::new(SEED, 0);
        for (index, (letter, read)) in history.chars().zip(ledger.client(0).unwrap()).enumerate() {
            let value = chain.value(index as u64 + 1);
            prop_assert_eq!(value, read.chain);
            match letter {
                'a' | 'w' => chain.acknowledged(value),
                'u' => chain.unknown(),
                _ => {}
            }
        }
    }
}
