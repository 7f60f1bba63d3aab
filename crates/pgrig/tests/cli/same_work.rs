//! `pgrig compare` of sides of which one does something else with the same statements.

use crate::Desk;

/// Changes of side B, each with the sentence that tells of it, and with the reason why the comparison ends. All of them are faster than what A does, and end with the
/// tags that clients expect, but for the first one.
const OTHER_WORK: [(&str, &str, &str, &str); 5] = [
    (
        "updates are dropped",
        "CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER drops BEFORE UPDATE ON pgbench_tellers FOR EACH ROW EXECUTE FUNCTION drops();",
        "ends with UPDATE 0 on B and with UPDATE 1 on A",
        "other_work",
    ),
    (
        "a row in a hundred is dropped after its insertion",
        "CREATE SEQUENCE n;
         CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
             IF nextval(''n'') % 100 = 0 THEN
                 DELETE FROM pgbench_history WHERE tid = NEW.tid AND bid = NEW.bid AND aid = NEW.aid;
             END IF; RETURN NULL; END';
         CREATE TRIGGER drops AFTER INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION drops();",
        // Where the transactions that are run one by one are fewer than a hundred, the whole load shows it.
        "table pgbench_history has grown by |the tables of B grew by ",
        "other_work|time",
    ),
    (
        "rows are dropped beside other clients only",
        "CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
             IF random() < 0.1 AND (SELECT count(*) > 1 FROM pg_locks
                                     WHERE locktype = ''virtualxid'' AND pid <> pg_backend_pid()) THEN
                 DELETE FROM pgbench_history WHERE ctid = (SELECT max(ctid) FROM pgbench_history);
             END IF; RETURN NULL; END';
         CREATE TRIGGER drops AFTER INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION drops();",
        "the tables of B grew by ",
        // The whole load shows it.
        "time",
    ),
    (
        "other values are stored",
        "CREATE FUNCTION rounds() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN NEW.bbalance := round(NEW.bbalance, -2); RETURN NEW; END';
         CREATE TRIGGER rounds BEFORE UPDATE ON pgbench_branches FOR EACH ROW EXECUTE FUNCTION rounds();",
        "column bbalance of table pgbench_branches has other values on B",
        "other_work",
    ),
    (
        "rows are not found",
        "ALTER TABLE pgbench_accounts RENAME TO accounts;
         CREATE VIEW pgbench_accounts AS SELECT aid, bid, abalance + aid % 2 AS abalance, filler FROM accounts;
         CREATE RULE u AS ON UPDATE TO pgbench_accounts DO INSTEAD
             UPDATE accounts SET abalance = NEW.abalance - NEW.aid % 2 WHERE aid = OLD.aid;",
        "returns other rows on B",
        "other_work",
    ),
];

#[test]
fn a_side_that_does_something_else_is_not_faster() {
    let check = |(what, sql, expected, stop): &(&str, &str, &str, &str)| {
        let desk = Desk::new();
        desk.write("other.sql", sql);
        let mut arguments = vec!["compare", "--b-sql", "other.sql", "-c", "4", "-s", "1"];
        // The rate leaves the CPUs to the others.
        arguments.extend(["-R", "100"]);
        arguments.extend(["--max-time", "60s", "--gate", "--json", "found.json"]);
        let said = desk.pgrig(&arguments).ended(4);
        let first =
            said.out.lines().find(|line| line.starts_with("B does something else than A: "));
        assert!(first.is_some(), "{what}: {}", said.out);
        let is_told = expected.split('|').any(|one| said.out.contains(one));
        assert!(is_told, "{what}, and not {expected}: {}", said.out);
        let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        crate::schemas::check("show", &json);
        let stopped = json["pairs"][0]["stop"].as_str().expect("a reason");
        assert!(stop.split('|').any(|one| one == stopped), "{what}: {stopped}");
        let figures = json["pairs"][0]["figures"].as_array().expect("figures");
        assert!(
            figures.iter().all(|figure| figure["verdict"] == "cannot_tell"),
            "{what}: {figures:?}"
        );
    };
    std::thread::scope(|scope| {
        for case in &OTHER_WORK {
            scope.spawn(move || check(case));
        }
    });
}

/// What lawfully differs from execution to execution is named, and refuses nothing.
#[test]
fn what_may_lawfully_differ_is_named() {
    let desk = Desk::new();
    desk.write(
        "data.sql",
        "CREATE TABLE t (k int PRIMARY KEY, a int, at timestamptz); \
        INSERT INTO t SELECT k, 0, now() FROM generate_series(1, 1000) k;\n",
    );
    desk.write(
        "w.sql",
        "\\set k random(1, 1000)\nUPDATE t SET a = a + 1, at = clock_timestamp() WHERE k = :k;\nSELECT random();\n\
         SELECT a FROM t WHERE k = :k;\nSELECT k FROM t WHERE a = 0 ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED;\n",
    );
    // Rows that a script of one side has added are none of the statements' work.
    desk.write(
        "more.sql",
        "INSERT INTO t SELECT k, 0, now() FROM generate_series(5001, 5010) k;\n",
    );
    let mut arguments = vec!["compare", "--b-sql", "more.sql", "--data", "data.sql"];
    arguments.extend(["-f", "w.sql", "-c", "4", "-R", "100"]);
    arguments.extend(["--max-time", "20s", "--gate", "--fail-on", "worse"]);
    let said = desk.pgrig(&arguments).ended(0);
    assert!(said.out.contains("\n  the same work: the answers of "), "{}", said.out);
    for expected in
        ["“SELECT random();” may differ lawfully", "column at of table t may differ lawfully"]
    {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
}
