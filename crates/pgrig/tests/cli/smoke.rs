//! The shipped studies, each in its smallest profile, from the command to the report.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::{Desk, Said};

const LEFT_OUT: [&str; 6] = ["cutover", "failover", "overload", "restore", "sharding", "soak"];

/// The note of claims that a race of PostgreSQL's may refute.
const DOCUMENTED_RACE: &str =
    "PostgreSQL documents it, but a transaction that only reads can see an anomaly";

#[test]
fn every_shipped_study_proves_itself_and_its_record_can_be_read() {
    let desk = Desk::new();
    let listed = desk.pgrig(&["studies"]).ended(0).out;
    let is_incomplete = AtomicBool::new(false);
    let studies = listed.lines().filter_map(|line| line.split_whitespace().next());
    // `make smoke` runs all. `make test` leaves out what its time has no room for: failover, which fetches packages and
    // waits for elections, sharding, which a test of hosts runs, and studies whose acts have tests of their own (logical,
    // phases, and those of restores and of clients that try again without servers).
    let is_run = |study: &&str| {
        std::env::var_os("PGRIG_TESTS_ALL_SMOKES").is_some() || !LEFT_OUT.contains(study)
    };
    let studies = Mutex::new(studies.filter(is_run));
    // Three at a time: they prove what is lost and what is not, and their speed says nothing.
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let next = studies.lock().unwrap().next();
                    let Some(study) = next else { break };
                    if !proves_itself(&desk, study) {
                        is_incomplete.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    if is_incomplete.into_inner() {
        testing::skip::no_root();
    }
}

/// Runs a study with `--gate`. Returns whether all of it ran: only root can do some of it.
fn proves_itself(desk: &Desk, study: &str) -> bool {
    let run = || {
        let mut command =
            desk.command(&["run", study, "--profile", "smoke", "--out", study, "--gate"]);
        if study == "sharding" {
            // Its I/O and its memory are limited, which servers in memory cannot have.
            command.env("TMPDIR", "/var/tmp");
        }
        Said::of(&command.output().unwrap())
    };
    let mut said = run();
    // A rare race of PostgreSQL's that is documented is no defect of the rig; it does not come twice.
    if said.code != Some(0) && said.out.contains(DOCUMENTED_RACE) {
        fs::remove_dir_all(desk.path(study)).unwrap();
        said = run();
    }
    // Nothing of it fits: only root can run it, or its packages cannot be had.
    if said.code == Some(3) {
        testing::skip::because(format!("study {study} does not fit this machine"));
        return true;
    }
    // Claims about what was left out cannot be told.
    let code = said.code.filter(|code| *code == 5 && leaves_out(&said)).unwrap_or(0);
    let said = said.ended(code);
    let columns = said.out.lines().map(|line| line.chars().count()).max();
    // The answer is the study's own sentence; everything else keeps to the width.
    let wide = said.out.lines().filter(|line| line.chars().count() > 100).count();
    assert!(wide <= 1, "{columns:?} columns:\n{}", said.out);
    assert!(said.out.contains(&format!("report   {study}/report.html")), "{}", said.out);
    assert!(said.out.contains(&format!("pgrig run {study} --profile smoke --seed ")));
    reads(desk, study, &said);
    !leaves_out(&said)
}

#[test]
fn a_new_study_runs_as_it_is() {
    let desk = Desk::new();
    desk.pgrig(&["new", "orders"]).ended(0);
    let run = ["run", "orders", "--profile", "smoke", "--out", "record", "--gate"];
    let files = ["--metrics", "run.prom", "--json", "run.json"];
    let said = desk.pgrig(&[&run[..], &files].concat()).ended(0);
    assert!(said.out.contains("in all 4 trials"), "{}", said.out);
    let figures = fs::read_to_string(desk.path("run.prom")).unwrap();
    assert!(figures.contains("\npgrig_run_trials_total{ending=\"done\"} 4\n"), "{figures}");
    let record = fs::read_to_string(desk.path("record/record.json")).unwrap();
    assert!(record.contains("data directories, without the WAL"), "{record}");
    reads(&desk, "record", &said);
    tells(&desk, "record");
    let shown = desk.pgrig(&["show", "record", "--json"]).ended(0).out;
    assert_eq!(fs::read_to_string(desk.path("run.json")).unwrap(), shown);
    let listed = desk.pgrig(&["show", ".", "--json"]).ended(0).out;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let (row, record) = (&listed[0], "./record".into());
    assert_eq!((&row["record"], &row["trials"], &row["planned"]), (&record, &4.into(), &4.into()));
}

/// What other programs are told of a study.
fn tells(desk: &Desk, record: &str) {
    let json = desk.pgrig(&["show", record, "--json"]).ended(0).out;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let claims = value["claims"].as_array().unwrap();
    let mut show = desk.command(&["show", record, "--github-summary", "--junit", "junit.xml"]);
    show.args(["--benchmark-action", "action", "--bencher", "bencher.json"]);
    let output = show.env("GITHUB_STEP_SUMMARY", desk.path("summary.md")).output().unwrap();
    Said::of(&output).ended(0);

    let read = |name: &str| fs::read_to_string(desk.path(name)).unwrap();
    let (junit, summary) = (read("junit.xml"), read("summary.md"));
    assert_eq!(junit.matches("<testcase ").count(), claims.len(), "{junit}");
    let holds = claims.iter().filter(|claim| claim["verdict"] == "holds").count();
    assert_eq!(junit.matches("<system-out>holds: ").count(), holds, "{junit}");
    assert_eq!(junit.matches("<failure ").count(), 0, "the gate was passed: {junit}");
    assert_eq!(summary.matches("| ✅ |").count(), holds, "{summary}");

    let json = |name: &str| -> serde_json::Value { serde_json::from_str(&read(name)).unwrap() };
    let (bencher, bigger) = (json("bencher.json"), json("action/bigger-is-better.json"));
    let tps = bencher.as_object().unwrap().values().map(|benchmark| &benchmark["tps"]);
    let tps: Vec<_> = tps.collect();
    assert_eq!(bigger.as_array().unwrap().len(), tps.len(), "{bigger}");
    for measure in tps {
        assert!(measure["value"].is_number(), "{measure}");
        let bounds = ["lower_value", "upper_value"].map(|name| &measure[name]);
        assert!(bounds.iter().all(|bound| bound.is_null()), "one round has no interval: {measure}");
    }
}

fn reads(desk: &Desk, study: &str, said: &Said) {
    for file in ["report.html", "report.md", "trials.csv", "verdicts.csv", "record.json"] {
        assert!(desk.path(&format!("{study}/{file}")).is_file(), "{file}");
    }
    let shown = desk.pgrig(&["show", study]).ended(0);
    assert!(said.out.starts_with(&shown.out), "{}\n{}", said.out, shown.out);

    crate::schemas::check_record(&desk.path(study));
    let json = desk.pgrig(&["show", study, "--json"]).ended(0).out;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    crate::schemas::check("show", &value);
    let claims = value["claims"].as_array().unwrap();
    assert!(!claims.is_empty());
    for claim in claims {
        for key in ["claim", "kind", "published", "measured", "low", "high", "n", "verdict"] {
            assert!(claim.get(key).is_some(), "{key} in {claim}");
        }
        if claim["kind"] == "invariant" && !(leaves_out(said) && claim["measured"].is_null()) {
            assert_eq!(claim["verdict"], "holds", "{claim}");
        }
    }

    std::fs::remove_file(desk.path(&format!("{study}/report.html"))).unwrap();
    let written = desk.pgrig(&["report", study]).ended(0);
    assert_eq!(written.out, format!("{study}/report.html\n"));
    assert!(desk.path(&format!("{study}/report.html")).is_file());

    let same = desk.pgrig(&["diff", study, study]).ended(0);
    assert!(same.out.contains("tps"), "{}", same.out);
    assert!(!same.out.contains("better"), "{}", same.out);
}

fn leaves_out(said: &Said) -> bool {
    !rustix::process::geteuid().is_root() && said.err.contains("needs to be root")
}

#[test]
fn each_generator_stands_beside_what_was_published_of_it() {
    let desk = Desk::new();
    desk.write_study("split", "[scenarios.split]\nrun = [\"insert\"]\ngenerators = 2\n");
    desk.write(
        "split/published.csv",
        "metric,variant,scenario,scope,axes,value,unit,source,note\n\
         transactions_total,default,split,generator 1,,10,,a paper,\n\
         tps_published,default,split,generator 2,,20,1/s,a paper,\n",
    );
    let run = ["run", "split", "--only", "split", "--rounds", "1", "--out", "record"];
    desk.pgrig(&run).ended(0);

    let trials = std::fs::read_to_string(desk.path("record/trials.csv")).unwrap();
    let figure = |metric: &str, scope: &str| {
        let named = |line: &&str| line.contains(&format!(",{metric},"));
        let of = |line: &&str| line.split(',').nth_back(1) == Some(scope);
        let line = trials.lines().filter(named).find(of);
        let value = line.and_then(|line| line.split(',').next_back()?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("no {metric} of {scope:?}:\n{trials}"))
    };
    let each = ["generator 1", "generator 2"].map(|own| figure("transactions_total", own));
    assert!(each.iter().all(|transactions| *transactions > 0.0), "{each:?}");
    assert_eq!(each[0] + each[1], figure("transactions_total", ""));
    assert!(figure("tps_published", "generator 2") > 0.0);

    let report = std::fs::read_to_string(desk.path("record/report.html")).unwrap();
    for own in ["· generator 1", "· generator 2"] {
        let row =
            report.split("<tr").find(|row| row.contains(own)).unwrap_or_else(|| panic!("{own}"));
        let row = row.split("</tr>").next().unwrap_or_default();
        // Its cells: place, published, here, here ÷ published (none for a count of another duration), source.
        let here = row.split("<td").nth(3).unwrap_or_default();
        assert!(!here.contains('–'), "nothing measured stands beside it: {row}");
    }
}
