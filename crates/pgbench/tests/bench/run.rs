//! Runs on a live server, beside the real pgbench with the same options.

use crate::common::{Ended, Server, ours_as_its_server};
use pgbench::Console;

fn initialised() -> Server {
    let server = Server::start(&[]);
    let ended = server.ours("postgres", "-i -q");
    assert_eq!(ended.code, 0, "{ended:?}");
    server
}

/// What programs read: the lines after the version, without ours, every number an N.
fn shape(out: &str) -> Vec<String> {
    let lines = out.lines().skip(1).filter(|line| !line.starts_with("pgrig: "));
    lines.map(without_numbers).collect()
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
        "-t 20 -b tpcb@3 -b select-only --random-seed=1",
        "-T 1 --random-seed=1 -S -N -r -P 1 --max-tries=2 --failures-detailed -c 2 -j 2",
        "-t 20 -S -S -R 100 -L 500 --random-seed=1",
    ] {
        let (ours, theirs) = (server.ours_alike("postgres", line), server.theirs("postgres", line));
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
fn the_servers_pgbench_is_spoken_unless_another_one_is_asked_for() {
    let server = initialised();
    let major: u32 =
        server.value("postgres", "show server_version_num").parse::<u32>().unwrap() / 10_000;
    let check = |more: &str, speaks: u32| {
        let line = format!("-t 5 -S -N -r {more}");
        let run = |line: &str| ours_as_its_server(&server.environment("postgres"), line);
        let (ours, theirs) =
            (run(&line), server.ours("postgres", &format!("{line} --as={speaks}")));
        assert_eq!(ours.code, 0, "{more} {ours:?}");
        assert!(ours.out.starts_with(&format!("pgbench ({speaks}.0, pgrig ")), "{ours:?}");
        assert_same_shape(&line, &ours, &theirs);
    };
    check("--random-seed=1", major);
    check("--random-seed=1 -d postgres", major);
    check("--random-seed=1 --as=17", 17);
    check("--random-seed=1 --as=19 --continue-on-error", 19);
    // What a server's own pgbench does not have is refused.
    for (option, since) in [("exit-on-abort", 17), ("continue-on-error", 19)] {
        let line = format!("-t 1 -S --{option}");
        let ended = ours_as_its_server(&server.environment("postgres"), &line);
        assert_eq!(ended.code, i32::from(major < since), "{ended:?}");
        let said = format!(
            "pgbench {major}, the server's version, has no option --{option}\n\
             pgrig: hint: --as {since} speaks"
        );
        assert_eq!(ended.err.contains(&said), major < since, "{ended:?}");
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

/// The same seed makes the same transactions in pgbench and here.
#[test]
fn a_seed_repeats_pgbenchs_run() {
    let server = initialised();
    let history = "select sum(hashtextextended(format('%s,%s,%s,%s', tid, bid, aid, delta), 0))
                   from pgbench_history";
    for line in ["-n -t 20 --random-seed=42", "-n -t 20 -c 3 --random-seed=7 -M prepared"] {
        let run = |ours: bool| {
            server.execute("postgres", "truncate pgbench_history");
            let ended = match ours {
                true => server.ours("postgres", line),
                false => server.theirs("postgres", line),
            };
            assert_eq!(ended.code, 0, "{ended:?}");
            (ended.err, server.value("postgres", history))
        };
        assert_eq!(run(true), run(false), "{line}");
    }
}

#[test]
fn what_pgbench_tells_without_a_server() {
    let server = Server::start(&[]);
    for line in ["-b list", "--show-script=tpcb", "--show-script=simple-update"] {
        let (ours, theirs) = (server.ours_alike("postgres", line), server.theirs("postgres", line));
        assert_eq!((ours.code, ours.out, ours.err), (theirs.code, theirs.out, theirs.err));
    }
    let version = server.ours("postgres", "--version").out;
    assert!(version.starts_with("pgbench (PostgreSQL) 19.0 ("), "{version}");
    let version = server.ours("postgres", "--as=18 --version").out;
    assert!(version.starts_with("pgbench (PostgreSQL) 18.0 ("), "{version}");
}

/// Averages are those of the transactions that are counted, which end after the close as well: the log has
/// each of them. The same is asked of the real pgbench.
#[test]
fn averages_are_those_of_every_transaction() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("slow.sql");
    std::fs::write(&script, "select pg_sleep(0.3 * (:client_id + 1));\n").unwrap();
    let check = |program: &str, number: usize, more: &str| {
        let log = folder.path().join(format!("{program}{number}"));
        let (script, log) = (script.display(), log.display());
        let more = more.replace("SCRIPT", &script.to_string());
        let line = format!("-f {script}@9 -n -c 4 -T 1 -r -l --log-prefix={log} {more}");
        let ended = match program {
            "ours" => server.ours_alike("postgres", &line),
            _ => server.theirs("postgres", &line),
        };
        assert_eq!(ended.code, 0, "{line} {ended:?}");
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let own = files.filter(|file| file.display().to_string().starts_with(&format!("{log}.")));
        let text: String = own.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .map(|row| row.split(' ').map(|word| word.parse().unwrap_or(f64::NAN)).collect())
            .filter(|row: &Vec<f64>| row[2].is_finite())
            .collect();
        let mean_ms = |of: &dyn Fn(&Vec<f64>) -> f64, rows: &[Vec<f64>]| {
            rows.iter().map(of).sum::<f64>() / rows.len() as f64 / 1e3
        };
        let told = |begin: &str, end: &str| -> f64 {
            let lines = ended.out.lines().filter(|line| !line.starts_with("pgrig: "));
            let mut values =
                lines.filter_map(|line| line.strip_prefix(begin)?.trim_start().split(end).next());
            values.next().and_then(|value| value.parse().ok()).expect(begin)
        };
        let agree = |name: &str, told: f64, log: f64| {
            assert!((told - log).abs() < 0.01, "{line}: {name} {told}, log {log}\n{}", ended.out);
        };
        let mean = mean_ms(&|row| row[2], &rows);
        agree("latency", told("latency average = ", " ms"), mean);
        let variance = mean_ms(&|row| (row[2] / 1e3 - mean).powi(2) * 1e3, &rows);
        agree("stddev", told("latency stddev = ", " ms"), variance.sqrt());
        let lag = mean_ms(&|row| row.get(6).copied().unwrap_or(0.0), &rows);
        if more.contains("-R") {
            agree("lag", told("rate limit schedule lag: avg ", " ("), lag);
        }
        if more.contains("-f") {
            let first: Vec<Vec<f64>> = rows.into_iter().filter(|row| row[3] == 0.0).collect();
            agree("script", told(" - latency average = ", " ms"), mean_ms(&|row| row[2], &first));
        } else if program == "ours" {
            // The transaction is its one command; pgbench looks at its clock between both.
            agree("command", told("   ", "  "), mean - lag);
        }
    };
    std::thread::scope(|scope| {
        for (number, more) in
            ["-P 9", "-L 9000", "-R 8", "-R 8 -f SCRIPT --random-seed=1"].into_iter().enumerate()
        {
            for program in ["ours", "theirs"] {
                scope.spawn(move || check(program, number, more));
            }
        }
    });
}

#[test]
fn progress_has_pgbenchs_lines() {
    let server = initialised();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("slow.sql");
    std::fs::write(&script, "\\sleep 5 ms\nselect 1;\n").unwrap();
    for more in ["", "-R 100 -L 50 --max-tries=2", "--progress-timestamp"] {
        let line = &format!("-f {} -n -T 3 -P 1 {more}", script.display());
        let (ours, theirs) = (server.ours_alike("postgres", line), server.theirs("postgres", line));
        let first = |ended: &Ended| ended.err.lines().next().map(without_numbers);
        assert_eq!(first(&ours), first(&theirs), "{line}");
        // If the machine stands still at the end, a statement outlasts -T, and its line is the fourth.
        let lines = ours.err.lines().filter(|line| line.starts_with("progress: ")).count();
        assert!((2..=4).contains(&lines), "{line}: {ours:?}");
    }
}

/// A warm-up does not count; what pgbench would count is told beside.
#[test]
fn a_warm_up_is_left_out() {
    let server = initialised();
    let ended = server.ours("postgres", "-S -n -T 2 -R 100 --arrivals=constant --warmup=1");
    assert_eq!(ended.code, 0, "{ended:?}");
    let processed = ended.out.lines().find_map(|line| {
        line.strip_prefix("number of transactions actually processed: ")?.parse::<u64>().ok()
    });
    assert!((190..=210).contains(&processed.expect("a count")), "{ended:?}");
    for line in [
        "\nduration: 2 s\n",
        "\npgrig: window             2.0 s: ",
        " a second, after 1.0 s of warm-up\n",
        "\npgrig: pgbench's way      ",
        "\npgrig: backlog            ",
    ] {
        assert!(ended.out.contains(line), "no {line:?} in {ended:?}");
    }
}

/// Nothing of ours can be taken for pgbench's by what greps its output.
#[test]
fn our_lines_cannot_be_mistaken() {
    let server = initialised();
    let ended = server.ours("postgres", "-S -n -T 1 -c 2 -R 50 --warmup=0.5 --no-describe -r");
    let ours: Vec<_> = ended.out.lines().filter(|line| line.starts_with("pgrig: ")).collect();
    assert!(ours.len() >= 7, "{ended:?}");
    for line in ours {
        assert!(!line.contains("tps") && !line.contains("latency"), "{line}");
    }
    assert!(ended.out.contains("results are not described (--no-describe)"), "{ended:?}");
}

/// Where our lines go elsewhere, standard output is pgbench's alone; one that is full is an error.
#[test]
fn standard_output_is_pgbenchs_alone() {
    let server = initialised();
    let environment = server.environment("postgres");
    let run = |line: &str, out: &mut dyn std::io::Write| {
        let (mut err, mut lines) = (Vec::new(), Vec::new());
        let mut console = Console::new(out, &mut err, false).with_lines(&mut lines);
        let code = crate::common::ours_on(&environment, line, &mut console);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (code, text(err), text(lines))
    };
    let mut out = Vec::new();
    let (code, err, lines) = run("-S -n -t 5 -r --as=17", &mut out);
    let out = String::from_utf8(out).expect("UTF-8");
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("pgbench (17.0, server "), "{out}");
    assert!(!out.contains("pgrig") && lines.starts_with("pgrig: percentiles"), "{out}{lines}");
    let behind = out.split("statement latencies in milliseconds and failures:\n").nth(1);
    let times = behind.expect("latencies").lines().map(|line| line.split_whitespace().next());
    assert!(times.flatten().all(|word| word.parse::<f64>().is_ok()), "{out}");

    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (code, err, _) = run("-S -n -t 1", &mut Full);
    let why = "pgbench: error: could not write the results to standard output: ";
    assert!(code == 2 && err.contains(why), "{code} {err}");
}

/// What is not as `-i` leaves it is told in the same words and in the same order.
#[test]
fn tables_of_another_kind_are_told_of() {
    let server = Server::start(&[]);
    let tables = "create table pgbench_branches as select 1 as bid;
                  create table pgbench_tellers (); create table pgbench_history ();";
    server.execute("postgres", tables);
    for accounts in [
        "",
        "create view pgbench_accounts as select 1 as aid, 2 as abalance",
        "drop view pgbench_accounts; create table pgbench_accounts (aid int) partition by list (aid)",
    ] {
        server.execute("postgres", accounts);
        for line in ["-S -t 1 -s 5", "-S -t 1 -v"] {
            let (ours, theirs) =
                (server.ours_alike("postgres", line), server.theirs("postgres", line));
            // Until version 16 the name was not quoted.
            let words = |ended: &Ended| ended.err.replace("\"search_path\"", "search_path");
            assert_eq!(
                (ours.code, words(&ours)),
                (theirs.code, words(&theirs)),
                "{accounts} {line}"
            );
        }
    }
}
