//! What a load on hosts comes to.

use std::fs;

use crate::desk::{Desk, here};

/// Draws from the client's own sequence, and says who drew.
const DRAW: &str = "\\set x random(1, 1000000)\nINSERT INTO drawn VALUES (:client_id, :x);\n";

/// The same clients draw the same numbers, everything is counted once, and the histograms of all
/// hosts are one.
pub(crate) fn hosts_do_what_one_process_does() {
    let desk = Desk::new();
    desk.execute("CREATE TABLE drawn (client int, x int)");
    desk.write("draw.sql", DRAW);
    let inventory = here(&["a", "b", "c"]) + "[hosts.d]\nweight = 3\n";
    desk.write("lab.toml", &inventory);
    let all = "SELECT client, x FROM drawn ORDER BY client, x";
    let words = "-n -f draw.sql -c 12 -j 4 -t 50 --random-seed=7";
    let alone = desk.bench(&desk.conninfo(), &format!("{words} --json=one.json"));
    assert_eq!(alone.code, Some(0), "{alone:?}");
    let expected = desk.rows(all);
    desk.execute("TRUNCATE drawn");
    let words = format!("{words} --hosts=lab.toml --json=four.json");
    let together = desk.bench(&desk.conninfo(), &words);
    assert_eq!(together.code, Some(0), "{together:?}");
    assert_eq!(desk.rows(all), expected, "the same numbers by the same clients");

    let (one, four) = (desk.json("one.json"), desk.json("four.json"));
    let number = |value: &serde_json::Value, place: &str| value.pointer(place).unwrap().as_u64();
    for place in ["/pgbench_way/transactions", "/latency/count", "/window/counts/transactions"] {
        assert_eq!(number(&four, place), Some(600), "{place}");
        assert_eq!(number(&one, place), Some(600), "{place}");
    }
    assert_eq!(four["per_client"], one["per_client"]);
    let hosts = four["hosts"].as_array().unwrap();
    let share = |host: &serde_json::Value| {
        (host["name"].as_str().unwrap().to_owned(), host["clients"].as_u64().unwrap())
    };
    let shares: Vec<_> = hosts.iter().map(share).collect();
    let expected = [("a", 2), ("b", 2), ("c", 2), ("d", 6)];
    assert_eq!(shares, expected.map(|(name, clients)| (name.to_owned(), clients)));
    let counted: u64 = hosts.iter().map(|host| host["transactions"].as_u64().unwrap()).sum();
    assert_eq!(counted, 600);
    // The merged histogram is the sum of the intervals', to the nanosecond.
    let intervals = four["intervals"].as_array().unwrap();
    let sum: u64 = intervals.iter().filter_map(|one| one.pointer("/latency/count")?.as_u64()).sum();
    assert_eq!(sum, 600);
    let lines = together.out.lines().filter(|line| line.starts_with("pgrig: host "));
    let lines: Vec<&str> = lines.collect();
    assert!(lines.len() == 4 && lines[3].contains("d             6 clients, "), "{lines:#?}");
    assert_eq!(one["hosts"].as_array().unwrap().len(), 0);
}

/// `-l`: a file for each lane of each host, on the rig's machine.
pub(crate) fn logs_of_hosts_come_home() {
    let desk = Desk::new();
    desk.write("select.sql", "SELECT 1;\n");
    desk.write("lab.toml", &here(&["a", "b"]));
    let words = "-n -f select.sql -c 4 -j 4 -t 25 -l --log-prefix=mine --hosts=lab.toml -P 1";
    let ended = desk.bench(&desk.conninfo(), words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut clients = Vec::new();
    for name in ["mine.a", "mine.a.1", "mine.b", "mine.b.1"] {
        let text = fs::read_to_string(desk.folder().join(name)).expect(name);
        assert_eq!(text.lines().count(), 25, "{name}: {text}");
        clients.push(text.split(' ').next().unwrap().to_owned());
    }
    assert_eq!(clients, ["0", "1", "2", "3"]);
    let others: Vec<_> =
        fs::read_dir(desk.folder()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(others.len(), 6, "{others:?}");
}

pub(crate) fn options_that_have_no_meaning_on_hosts_are_refused() {
    let desk = Desk::new();
    desk.write("lab.toml", &here(&["a", "b"]));
    let check = |words: &str, expected: &str| {
        let ended = desk.bench(&desk.conninfo(), &format!("-n -S -t 1 -c 2 {words}"));
        assert_eq!(ended.code, Some(1), "{words}: {ended:?}");
        assert!(ended.err.contains(expected), "{words}: {}", ended.err);
    };
    check("--hosts=lab.toml --generators=2", "leave out --generators");
    check("--hosts=lab.toml --baseline", "not on the hosts");
    check("--push", "allowed only with --hosts");
    check("--hosts=lab.toml --on-host-loss=never", "expecting stop or go-on");
    desk.execute(
        "CREATE TABLE pgbench_branches (bid int); INSERT INTO pgbench_branches VALUES (1)",
    );
    desk.execute("CREATE TABLE pgbench_accounts (aid int, abalance int)");
    check("--hosts=lab.toml -c 1", "1 clients (-c) are fewer than the 2 hosts of lab.toml");
    check("--hosts=nosuch.toml", "reading the inventory nosuch.toml: No such file");
}
