//! A seed gives every generator of a run the same numbers.

use std::fs;
use std::path::{Path, PathBuf};

use script::{ParsedScript, Protocol, RandomSeeds, ScriptSyntax, VariableNames};

use crate::support::{self, Postgres, session};

#[test]
fn a_seed_gives_every_client_its_numbers() {
    let server = Postgres::shared();
    let text = "\\set x debug(:client_id * 10000000 + random(1, 1000000))\n\
                \\set y debug(:default_seed)\n\\set y debug(:random_seed)\n\\set z debug(hash(:x))\n";
    for (seed, clients) in [(1, 1), (7_141, 3), (u64::from(u32::MAX) * 99, 5)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let mut command = support::pgbench(&server.directory());
        command.arg(format!("--random-seed={seed}")).arg(format!("-c{clients}"));
        let output = support::finish(command.args(["-j1", "-t3", "-f"]).arg(file.path()));
        let mut there = support::debugged(&output);

        let mut names = VariableNames::new();
        let script = ParsedScript::parse("t", text, ScriptSyntax::Pgbench, &mut names).unwrap();
        let seeds = RandomSeeds::new(seed, clients, 1, None);
        let mut here = Vec::new();
        for (client, prng) in seeds.clients.iter().enumerate() {
            let mut prng = prng.clone();
            let mut variables = session::startup(&names, client as i64, seed, seeds.default_seed);
            for _ in 0..3 {
                let done = session::run(&script, Protocol::Simple, &mut variables, &mut prng);
                here.extend(done.debug);
            }
        }
        // The clients' transactions alternate; what they print is compared as a whole.
        there.sort();
        here.sort();
        assert_eq!(here, there, "seed {seed}, {clients} clients");
    }
}

/// The choice of scripts and the pace: each thread's own generators, seen in the log.
#[test]
fn a_seed_gives_every_thread_its_numbers() {
    const PER_CLIENT: usize = 60;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = directory.path().join(name);
        fs::write(&path, "\\set x 1\n").unwrap();
        path.display().to_string()
    };
    let scripts = [file("a"), format!("{}@0", file("b")), format!("{}@3", file("c"))];
    let [a, b, c] = &scripts;
    let rate = ["--random-seed=99", "-c2", "-j2", "-t60", "-R2000"];
    let logs = logs(directory.path(), &[&rate[..], &["-f", a, "-f", b, "-f", c]].concat());
    assert_eq!(logs.len(), 2, "a log for each thread");

    let seeds = RandomSeeds::new(99, 2, 2, None);
    let weights = script::WeightTable::new([1, 0, 3]).unwrap();
    for rows in logs {
        // Thread 0 has client 0, thread 1 has client 1.
        let thread = &seeds.threads[rows[0][0] as usize];
        let mut choose = thread.choose.clone();
        let here: Vec<i64> = rows.iter().map(|_| weights.choose(&mut choose) as i64).collect();
        let there: Vec<i64> = rows.iter().map(|row| row[3]).collect();
        assert_eq!(here, there, "scripts of thread {}", rows[0][0]);

        // A row has the latency from the scheduled start and then the time, for which pgbench reads
        // its clock once more: where it waits for a CPU in between, the start looks later, never
        // earlier. Both are rounded to microseconds.
        let gap_us = 1_000_000.0 / 2000.0 * 2.0;
        let mut throttle = thread.throttle.clone();
        let mut scheduled = 0;
        let starts = rows.iter().map(|row| {
            scheduled += throttle.poisson_gap(gap_us);
            row[4] * 1_000_000 + row[5] - row[2] - scheduled
        });
        let starts: Vec<i64> = starts.collect();
        let start = *starts.iter().min().unwrap();
        let on_schedule = starts.iter().filter(|seen| **seen - start <= 1).count();
        assert!(on_schedule > PER_CLIENT / 2, "schedule of thread {}: {starts:?}", rows[0][0]);
        assert_eq!(rows.len(), PER_CLIENT);
    }
}

#[test]
fn a_seed_gives_the_sample() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("a");
    fs::write(&script, "\\set x 1\n").unwrap();
    let script = script.display().to_string();
    let options = ["--random-seed=5", "-c1", "-j1", "-t200", "--sampling-rate=0.3", "-f", &script];
    let there: Vec<i64> = logs(directory.path(), &options)[0].iter().map(|row| row[1]).collect();
    let mut sample = RandomSeeds::new(5, 1, 1, None).threads[0].sample.clone();
    let here: Vec<i64> = (1..=200).filter(|_| sample.double() <= 0.3).collect();
    assert_eq!(here, there);
}

/// The rows of each thread's transaction log.
fn logs(directory: &Path, options: &[&str]) -> Vec<Vec<Vec<i64>>> {
    let server = Postgres::shared();
    let mut command = support::pgbench(&server.directory());
    command.args(options).arg("-l").arg("--log-prefix").arg(directory.join("log"));
    let output = support::finish(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let is_log = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."))
    };
    let row = |line: &str| line.split(' ').map(|field| field.parse().unwrap()).collect();
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(is_log)
        .map(|path| fs::read_to_string(path).unwrap().lines().map(row).collect())
        .collect()
}
