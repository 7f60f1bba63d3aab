//! `pgrig compare` on the ground of production: what differs between the sides without being named.

use lab::{Lab, Node, NodeConfig};

use crate::Desk;

/// A server of the user's whose databases have this locale, with texts that an index finds by their beginning where the
/// collation is C.
fn server(lab: &Lab, name: &str, locale: &str) -> Node {
    let mut config = NodeConfig::new(testing::servers::settings(&[("autovacuum", "off")]));
    config.initdb = vec![format!("--lc-collate={locale}"), format!("--lc-ctype={locale}")];
    let node = testing::servers::start(lab, name, config);
    let texts = "CREATE TABLE texts (t text PRIMARY KEY);
        INSERT INTO texts SELECT md5(i::text) FROM generate_series(1, 50000) i; ANALYZE texts;";
    node.connect().expect("a connection").batch_execute(texts).expect("a table is made");
    node
}

/// The same rows and statements, faster by the collation alone: nothing is called faster until somebody says that this is
/// meant. A setting and statistics that differ are told as well.
#[test]
fn a_collation_that_nobody_has_named_makes_no_side_faster() {
    let labs = [testing::servers::lab(), testing::servers::lab()];
    let a = server(&labs[0], "a", "C.UTF-8");
    let b = server(&labs[1], "b", "C");
    let places = [&a, &b].map(|node| node.endpoint().to_string());
    let desk = Desk::new();
    // Without the pause the load would take the CPUs of the tests beside it.
    desk.write("like.sql", "\\sleep 3 ms\nSELECT count(*) FROM texts WHERE t LIKE 'abc%';\n");
    let check = |differs: &[&str], code: i32, answer: &str| {
        // What is never judged is not measured for long.
        let time = if code == 0 { "1min" } else { "12s" };
        let mut arguments = vec!["compare", "--a-conninfo", &places[0], "--b-conninfo", &places[1]];
        arguments.extend(["--no-init", "-f", "like.sql", "-c", "1", "--max-time", time]);
        arguments.extend(["--gate", "throughput", "--threshold", "30%", "--json", "found.json"]);
        arguments.extend(differs);
        let said = desk.pgrig(&arguments).ended(code);
        assert!(said.out.contains(answer), "{differs:?}: {}", said.out);
        let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        crate::schemas::check("show", &json);
        json
    };
    let collation = "collation is C.UTF-8 (libc) on A and C (libc) on B";
    let json = check(&[], 5, &format!("Cannot tell what B is like: {collation}, and no option"));
    let figures = json["pairs"][0]["figures"].as_array().expect("figures");
    assert!(figures.iter().all(|figure| figure["verdict"] == "cannot_tell"), "{figures:?}");
    check(&["--differs", "collation"], 0, " is faster than A");

    let planted = "ALTER SYSTEM SET work_mem = '8MB'; SELECT pg_reload_conf();
        ALTER TABLE texts ALTER t SET STATISTICS 7;";
    let mut client = b.connect().expect("a connection");
    planted.split_inclusive(';').for_each(|one| client.batch_execute(one).expect(one));
    let told =
        "Cannot tell what B is like: work_mem is 4MB on A and 8MB on B, and 1 difference more, and";
    let json = check(&["--differs", "collation"], 5, told);
    assert_eq!(json["pairs"][0]["ground"][1]["name"], "statistics", "{json}");
}

/// A dump of a database with the collation C.UTF-8 and a setting of its own, from a server with settings.
fn production(desk: &Desk) -> (Node, Lab) {
    let lab = testing::servers::lab();
    let settings = [("random_page_cost", "1.7"), ("max_wal_size", "333MB")];
    let node = testing::servers::start(
        &lab,
        "production",
        NodeConfig::new(testing::servers::settings(&settings)),
    );
    let make = [
        "CREATE DATABASE shop TEMPLATE template0 LOCALE 'C.UTF-8'",
        "ALTER DATABASE shop SET work_mem = '7MB'",
    ];
    let mut client = node.connect().expect("a connection");
    make.iter().for_each(|one| client.batch_execute(one).expect(one));
    let mut shop = node.connect_to("shop").expect("a connection");
    shop.batch_execute("CREATE TABLE t AS SELECT generate_series(1, 5) AS i").expect("a table");
    let place = shop_of(&node);
    let formats =
        [("shop.dump", "--format=custom"), ("shop.sql", "--create"), ("t.sql", "--format=plain")];
    for (name, option) in formats {
        let mut dump = std::process::Command::new(node.installation().program("pg_dump"));
        dump.args([option, "--dbname", &place, "--file"]).arg(desk.path(name));
        assert!(dump.status().expect("pg_dump").success());
    }
    (node, lab)
}

fn shop_of(node: &Node) -> String {
    lab::Endpoint { database: "shop".to_owned(), ..node.endpoint() }.to_string()
}

/// Servers of pgrig's have the locale and the settings that are said of production, and what they cannot have is told.
#[test]
fn servers_of_pgrigs_are_like_production() {
    let desk = Desk::new();
    let (node, _lab) = production(&desk);
    let like = shop_of(&node);
    desk.write("more.conf", "random_page_cost = 1.3  # disks are fast\nport = 5433\n");
    desk.write("postgresql.conf", "include 'more.conf'\nshared_buffers = 99TB\nwork_mem = 9MB\n");
    // A statement that fails where the server is not as it should be.
    let check = |options: &[&str], is: &str, told: &[&str]| {
        desk.write("is.sql", &format!("\\sleep 5 ms\nSELECT 1 / (SELECT count(*) FROM pg_database WHERE datname = current_database() AND {is});\n"));
        let mut arguments =
            vec!["compare", "--self", "-f", "is.sql", "-c", "1", "--max-time", "8s"];
        arguments.extend(["--json", "found.json"]);
        arguments.extend(options);
        let said = desk.pgrig(&arguments).ended(0);
        for words in told {
            assert!(
                said.out.contains(words) && said.err.contains(words),
                "{words}: {}\n{}",
                said.out,
                said.err
            );
        }
        let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
        crate::schemas::check("show", &serde_json::from_str(&json).expect("JSON"));
    };
    let utf8 =
        "datcollate = 'C.UTF-8' AND datctype = 'C.UTF-8' AND current_setting('work_mem') = '7MB'";
    let said = "have the collation C.UTF-8 (libc), encoding UTF8, as";
    check(&["--data", "shop.dump"], utf8, &[said, "as shop.dump says"]);
    check(&["--data", "shop.sql"], utf8, &[said, "as shop.sql says"]);
    let plain = ["--data", "t.sql"];
    let silent = "t.sql does not say which collation production has";
    check(&plain, "datcollate = 'C' AND current_setting('work_mem') = '4MB'", &[silent]);
    let costs = "current_setting('random_page_cost') = '1.7'";
    let changed = "max_wal_size 333MB → 16GB (checkpoints happen between segments)";
    check(
        &[&plain[..], &["--like", &like]].concat(),
        &format!("{utf8} AND {costs}"),
        &[said, changed],
    );
    let named = [&plain[..], &["--locale", "icu:de-DE"]].concat();
    check(
        &named,
        "datlocprovider = 'i'",
        &["have the collation de-DE (icu), encoding UTF8, as --locale says"],
    );
    let fits =
        "current_setting('random_page_cost') = '1.3' AND current_setting('work_mem') = '9MB'";
    let told = [
        "Settings are those of postgresql.conf",
        "shared_buffers 99TB → ",
        "port 5433 → left out (of its place)",
    ];
    check(&["--conf", "postgresql.conf"], fits, &told);

    // The side that pgrig makes is like the other one, and nothing is left to be named.
    desk.write("r.sql", "CREATE TABLE r AS SELECT 1 AS i;\n");
    let is = format!("{utf8} AND {costs} AND current_setting('max_wal_size') = '333MB'");
    desk.write("is.sql", &format!("\\sleep 5 ms\nSELECT 1 / (SELECT count(*) FROM pg_database WHERE datname = current_database() AND {is});\n"));
    let mut arguments = vec!["compare", "--a-conninfo", &like, "--data", "r.sql", "-f", "is.sql"];
    arguments.extend(["-c", "1", "--max-time", "8s"]);
    let one_sided = desk.pgrig(&arguments).ended(0);
    assert!(!one_sided.out.contains("no option names"), "{}", one_sided.out);
}

#[test]
fn what_cannot_be_like_production_is_refused_before_anything_is_built() {
    let desk = Desk::new();
    desk.write("bad.conf", "jit = on\nnonsense\n");
    desk.write("unknown.conf", "no_such_setting = 3\n");
    desk.write("library.conf", "shared_preload_libraries = 'nowhere'\n");
    let check = |options: &[&str], told: &str, next: &str| {
        let said = desk.pgrig(&[&["compare", "--self", "-S"], options].concat()).ended(1);
        assert!(said.err.contains(told) && said.err.contains(next), "{options:?}: {}", said.err);
        assert!(!said.err.contains("building"), "{}", said.err);
    };
    check(
        &["--locale", "xx_YY.UTF-8"],
        "cannot have the collation xx_YY.UTF-8 (libc), as --locale says",
        "locale-gen",
    );
    check(&["--conf", "bad.conf"], "line 2 of bad.conf", "pg_settings");
    check(&["--conf", "nowhere.conf"], "nowhere.conf", "No such file");
    check(
        &["--conf", "unknown.conf"],
        "no_such_setting = 3 does not fit side A",
        "--without no_such_setting",
    );
    check(&["--like", "hots=x"], "reading the address of --like", "hots");
    check(&["--like", "host=/nowhere"], "/nowhere", "");
    let library = desk.pgrig(&["compare", "--self", "-S", "--conf", "library.conf"]);
    assert!(library.err.contains("nowhere is not installed"), "{}", library.err);
}

/// A base backup of a server that runs, in this format.
fn backup(node: &Node, desk: &Desk, name: &str, format: &str) {
    let mut take = std::process::Command::new(node.installation().program("pg_basebackup"));
    take.args(["--dbname", &node.endpoint().to_string(), "--checkpoint=fast", "--no-sync"]);
    take.args(["--format", format, "--pgdata"]).arg(desk.path(name));
    assert!(take.status().expect("pg_basebackup").success());
}

/// A copy of production is copied again, recovered, and never opened itself; its settings are the base of both sides.
#[test]
fn a_base_backup_is_the_data_of_both_sides() {
    let desk = Desk::new();
    let (node, _lab) = production(&desk);
    let mut shop = node.connect_to("shop").expect("a connection");
    // What only the WAL of the backup has is recovered.
    shop.batch_execute("CREATE TABLE late AS SELECT 7 AS i").expect("a table");
    backup(&node, &desk, "plain", "plain");
    backup(&node, &desk, "tars", "tar");
    let control = || std::fs::read(desk.path("plain/global/pg_control")).expect("pg_control");
    let before = control();
    let is = "datcollate = 'C.UTF-8' AND current_setting('work_mem') = '7MB' AND (SELECT i FROM late) = 7";
    desk.write("is.sql", &format!("\\sleep 5 ms\nSELECT 1 / (SELECT count(*) FROM pg_database WHERE datname = current_database() AND {is});\n"));
    let check = |data: &str, told: &str| {
        let mut arguments =
            vec!["compare", "--self", "-f", "is.sql", "-c", "1", "--max-time", "8s"];
        arguments.extend(["--data", data]);
        let said = desk.pgrig(&arguments).ended(0);
        assert!(
            said.out.contains(&format!("The data are a copy of {data}, of PostgreSQL ")),
            "{}",
            said.out
        );
        assert!(said.out.contains(told), "{}", said.out);
        assert!(said.err.contains("the same files"), "{}", said.err);
    };
    check("plain", "Settings are those of plain.");
    check("tars", "tars has no postgresql.conf: --conf gives production's settings.");
    assert!(before == control(), "the backup itself was opened");
    assert!(desk.path("plain/backup_label").exists());
}

#[test]
fn a_base_backup_that_does_not_fit_is_refused_before_anything_is_built() {
    let desk = Desk::new();
    let (node, _lab) = production(&desk);
    let copy = |name: &str| {
        backup(&node, &desk, name, "plain");
        desk.path(name)
    };
    let check = |data: &str, told: &str, next: &str| {
        let said = desk.pgrig(&["compare", "--self", "-S", "--data", data]).ended(1);
        assert!(said.err.contains(told) && said.err.contains(next), "{data}: {}", said.err);
        assert!(!said.err.contains("building"), "{}", said.err);
    };
    let data = node.data().display().to_string();
    check(&data, "uses it", "pg_basebackup");
    std::fs::write(copy("older").join("PG_VERSION"), "12\n").expect("a file");
    check("older", "older is a copy of PostgreSQL 12's data, and the server is", "--b-upgrade");
    let control = copy("other").join("global/pg_control");
    let mut bytes = std::fs::read(&control).expect("pg_control");
    bytes[8..12].reverse();
    std::fs::write(&control, bytes).expect("a file");
    check("other", "another architecture", "as a dump");
    let wal = copy("bare").join("pg_wal");
    std::fs::remove_dir_all(&wal).expect("WAL");
    std::fs::create_dir(&wal).expect("a directory");
    check("bare", "pg_wal is empty", "--wal-method=stream");
}
