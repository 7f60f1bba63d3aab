//! The command line: what it asks for, and pgbench's own words when it cannot be.

use std::process::Command;

use load::{Pace, Protocol, WarmUp};
use pgbench::options::{
    Invocation, Length, LoadProgress, PartitionMethod, Partitions, Persistence, Request, TableSet,
    Vacuum,
};
use script::RandomSeed;

fn read_as(program: &str, line: &[&str]) -> Result<Request, String> {
    let arguments: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
    let invocation = Invocation { program, ..Invocation::of(&arguments, None) };
    Request::read(&invocation).map_err(|complaint| complaint.to_string())
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| !word.is_empty()).collect()
}

fn run(line: &str) -> pgbench::options::RunOptions {
    match read_as("pgbench", &words(line)) {
        Ok(Request::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn initialise(line: &str) -> pgbench::options::InitialiseOptions {
    match read_as("pgbench", &words(line)) {
        Ok(Request::Initialise(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn nothing_asks_for_pgbenchs_defaults() {
    let options = run("");
    assert_eq!(options.scripts.len(), 1);
    assert_eq!(options.scripts[0].name, "<builtin: TPC-B (sort of)>");
    assert_eq!((options.clients, options.lanes), (1, 1));
    assert_eq!(options.length, Length::Transactions(10));
    assert_eq!((options.protocol, options.pace), (Protocol::Simple, Pace::Closed));
    assert_eq!(options.vacuum, Vacuum::Small);
    assert_eq!((options.on_error.tries_max, options.on_error.go_on), (1, false));
    assert_eq!((options.seed, options.log, options.scale), (None, None, None));
    assert!(options.ours.warm_up.is_none() && options.ours.describe);
}

#[test]
fn options_are_taken_in_every_spelling() {
    let options = run("-nSMprepared -c64 --jobs=100 -T 20 mydb");
    assert_eq!(options.scripts[0].name, "<builtin: select only>");
    assert_eq!(options.protocol, Protocol::Prepared);
    assert_eq!((options.clients, options.lanes), (64, 64));
    assert_eq!(options.length, Length::Seconds(20));
    assert_eq!(options.vacuum, Vacuum::Nothing);
    assert_eq!(options.server.dbname.as_deref(), Some("mydb"));

    let options = run("-b tpcb@3 -b si -N -d db -h /tmp -p 5433 -U me -D a=1 -D b==2 -v");
    let scripts: Vec<_> = options.scripts.iter().map(|one| (&*one.name, one.weight)).collect();
    let simple = ("<builtin: simple update>", 1);
    assert_eq!(scripts, [("<builtin: TPC-B (sort of)>", 3), simple, simple]);
    assert_eq!(options.server.dbname.as_deref(), Some("db"));
    assert_eq!(options.server.host.as_deref(), Some("/tmp"));
    assert_eq!(options.server.port.as_deref(), Some("5433"));
    assert_eq!(options.server.user.as_deref(), Some("me"));
    let variables: Vec<_> = options.variables.iter().map(|(n, v)| format!("{n}|{v}")).collect();
    assert_eq!(variables, ["a|1", "b|=2"]);
    assert_eq!(options.vacuum, Vacuum::All);

    let options = run(
        "-l --log-prefix=x --sampling-rate=.5 -R 100.5 -L 2.5 -P 3 --max-tries 0 --random-seed=7 \
         -r -C --failures-detailed --verbose-errors --exit-on-abort --continue-on-error --debug",
    );
    let log = options.log.expect("asked for");
    assert_eq!((&*log.prefix, log.sampling_rate, log.aggregate_s), ("x", 0.5, None));
    assert_eq!(options.pace, Pace::Poisson(100.5));
    assert_eq!((options.latency_limit_us, options.progress_s), (Some(2500), Some(3)));
    assert_eq!((options.on_error.tries_max, options.on_error.go_on), (0, true));
    assert_eq!(run("-R 5 -R 1e400").pace, Pace::Closed, "an infinite rate is none");
    assert_eq!(options.seed, Some(RandomSeed::Given(7)));
    assert!(options.per_command && options.connect_each && options.failures_detailed);
    assert!(options.verbose_errors && options.exit_on_abort && options.debug);
}

#[test]
fn what_pgbench_does_not_have() {
    let options =
        run("-T 10 --warmup=auto --connect-rate=50 --generators=2 -c 4 --hdr a --json b --html c \
         --no-describe --syntax=9.x -R 10 --arrivals constant --interval 100");
    assert!(matches!(options.ours.warm_up, Some(WarmUp::Auto { .. })));
    assert_eq!((options.ours.connect_rate, options.ours.generators), (Some(50.0), 2));
    assert_eq!(options.pace, Pace::Constant(10.0));
    assert_eq!(options.ours.interval_ms, 100);
    assert!(!options.ours.describe);
    assert!(!run("-C").ours.caches_keys && run("-C --cache-keys").ours.caches_keys);
    assert_eq!(run("-T 1 --warmup 2.5").ours.warm_up, Some(WarmUp::Fixed(2500)));
}

#[test]
fn initialisation_has_its_own_options() {
    let options = initialise("-i");
    assert_eq!((&*options.steps, options.scale, options.fillfactor), ("dtgvp", 1, 100));
    assert_eq!(options.progress, LoadProgress::Rows);
    assert_eq!((options.partitions, options.persistence), (None, Persistence::Logged));
    let options = initialise(
        "-i -n -q -s 5 -F 90 --foreign-keys --partitions=3 --tablespace=a --index-tablespace=b \
         --unlogged-tables",
    );
    assert_eq!((&*options.steps, options.scale, options.fillfactor), ("dtg pf", 5, 90));
    assert_eq!(options.progress, LoadProgress::Seconds);
    let range = Partitions { count: 3, method: PartitionMethod::Range };
    assert_eq!((options.partitions, options.persistence), (Some(range), Persistence::Unlogged));
    assert_eq!(initialise("-i -I dtGvpf --foreign-keys").steps, "dtGvpf");
    let hash = initialise("-i --partitions=2 --partition-method=HASH").partitions;
    assert_eq!(hash.map(|partitions| partitions.method), Some(PartitionMethod::Hash));
}

#[test]
fn what_is_done_at_once() {
    let check = |line: &str, expected: &str| {
        let request = read_as("pgbench", &words(line)).expect(line);
        assert!(format!("{request:?}").starts_with(expected), "{line}: {request:?}");
    };
    check("--help", "Help");
    check("-?", "Help");
    check("-c 5 --help", "Help");
    check("-V", "Version");
    check("--version", "Version");
    check("-b list", "ListScripts");
    check("--show-script=select", "ShowScript(BuiltinScript { name: \"select-only\"");
    assert!(read_as("pgbench", &["-c", "0", "--help"]).is_err(), "the first mistake counts");
}

/// Wrong command lines for which pgbench 15 and 18 have the same words: both are run.
const MISTAKES: &[&str] = &[
    "--bad-option",
    "--bad-option=3",
    "-c",
    "-z",
    "--client",
    "--connect=1",
    "--s",
    "--part=3",
    "-c 0",
    "-c -5",
    "-c three",
    "-c 2147483648",
    "-c 1x",
    "-j zero",
    "-j 0",
    "-t 0",
    "-t -5",
    "-T 0",
    "-T abc",
    "-P 0",
    "-s two",
    "-s 0",
    "-F 5",
    "-F 101",
    "-F x",
    "-L 0",
    "-L -1",
    "-L x",
    "-R 0",
    "-R -inf",
    "-R slow",
    "-M bad",
    "-M Simple",
    "-D x",
    "-D x=",
    "-D =1",
    "-D a-b=1",
    "-D 1a=1",
    "-b nosuch",
    "-b s",
    "-b nosuch@3",
    "-b tpcb@x",
    "-b tpcb@",
    "-b tpcb@2147483648",
    "-b tpcb@-1",
    "-b tpcb@99999999999999999999",
    "--show-script=nosuch",
    "-S@0 -S@0 -b se@0",
    "-b se@0",
    "-f no-such-file",
    "-f no-such-file@3",
    "-f /",
    "-i -I",
    "-i -I dta",
    "-I d",
    "-i -S",
    "-i -c 5",
    "-i -t 5 -j 3",
    "-F 50 -S",
    "-q",
    "--foreign-keys",
    "--tablespace=x -T 5",
    "--unlogged-tables",
    "--partitions=3",
    "--partitions=-1",
    "--partitions=x -i",
    "-i --partition-method=hash",
    "-i --partition-method=list",
    "-i --partitions=0 --partition-method=range",
    "-t 10 -T 10",
    "--sampling-rate=0",
    "--sampling-rate=2",
    "--sampling-rate=0.1",
    "--sampling-rate=0.1 -l --aggregate-interval=3",
    "--aggregate-interval=0 -l",
    "--aggregate-interval=x -l",
    "--aggregate-interval=3",
    "--aggregate-interval=5 -l -T 3",
    "--aggregate-interval=2 -l -T 3",
    "--log-prefix=x",
    "--progress-timestamp",
    "--max-tries=-1",
    "--max-tries=0",
    "--max-tries=abc",
    "--random-seed=bad",
    "--random-seed=",
    "--random-seed=-x",
    "db more",
    "db more even",
    "-n -- -c -d",
];

#[test]
fn mistakes_are_told_in_pgbenchs_words() {
    let pgbench = pgbench_program();
    for line in MISTAKES {
        let line = words(line);
        let output = Command::new(&pgbench)
            .args(&line)
            .env("LC_ALL", "C")
            .env_remove("PGBENCH_RANDOM_SEED")
            .output()
            .expect("pgbench runs");
        let theirs = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours = read_as(&pgbench, &line).expect_err(&line.join(" "));
        // Minor releases before August 2026 misspelt the option.
        let theirs = theirs.replace("-c/--clients", "-c/--client");
        assert_eq!(ours.trim_end(), theirs.trim_end(), "{line:?}");
        assert_eq!(output.status.code(), Some(1), "{line:?}");
    }
}

#[test]
fn mistakes_that_pgbench_cannot_make() {
    let check = |line: &str, expected: &str| {
        let complaint = read_as("pgbench", &words(line)).expect_err(line);
        assert_eq!(complaint, format!("pgbench: error: {expected}"), "{line}");
    };
    check("--warmup=5", "--warmup can only be used with a duration (-T)");
    check("--warmup=x", "invalid warm-up, expecting \"auto\" or seconds, got: \"x\"");
    check("--arrivals=constant", "--arrivals is allowed only with a rate limit (-R)");
    check(
        "-R 1 --arrivals=x",
        "invalid arrivals, expecting \"poisson\" or \"constant\", got: \"x\"",
    );
    check("--connect-rate=0", "invalid connection rate: \"0\"");
    check("--generators=2", "--generators must not be higher than the number of clients (-c)");
    check("--syntax=8", "invalid script syntax, expecting \"9.x\" or \"current\", got: \"8\"");
    let scripts = vec!["-S"; 129];
    let complaint = read_as("pgbench", &scripts).expect_err("one too many");
    assert_eq!(complaint, "pgbench: error: at most 128 SQL scripts are allowed");
}

#[test]
fn the_seed_comes_from_the_environment_too() {
    let read = |value: &'static str, line: &[&str]| {
        let arguments: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        let environment =
            move |name: &str| (name == "PGBENCH_RANDOM_SEED").then(|| value.to_owned());
        Request::read(&Invocation { environment: &environment, ..Invocation::of(&arguments, None) })
    };
    let seed = |request| match request {
        Ok(Request::Run(options)) => options.seed,
        other => panic!("{other:?}"),
    };
    assert_eq!(seed(read("5", &[])), Some(RandomSeed::Given(5)));
    assert_eq!(seed(read("5", &["--random-seed=rand"])), Some(RandomSeed::Strong));
    assert_eq!(
        read("x", &[]).expect_err("no seed").to_string(),
        "pgbench: error: unrecognized random seed option \"x\"\n\
         pgbench: detail: Expecting an unsigned integer, \"time\" or \"rand\".\n\
         pgbench: error: error while setting random seed from PGBENCH_RANDOM_SEED environment \
         variable"
    );
}

#[test]
fn the_environment_chooses_the_interface_for_sending_and_receiving() {
    let read = |value: Option<&'static str>| {
        let environment = move |name: &str| match name {
            "PGRIG_IO" => value.map(str::to_owned),
            _ => None,
        };
        match Request::read(&Invocation { environment: &environment, ..Invocation::of(&[], None) })
        {
            Ok(Request::Run(options)) => Ok(options.io_uring),
            Ok(other) => panic!("{other:?}"),
            Err(complaint) => Err(complaint.to_string()),
        }
    };
    assert_eq!(read(None), Ok(true));
    assert_eq!(read(Some("io_uring")), Ok(true));
    assert_eq!(read(Some("epoll")), Ok(false));
    assert_eq!(
        read(Some("poll")),
        Err("pgbench: error: invalid value of the environment variable PGRIG_IO, expecting \"epoll\" \
             or \"io_uring\", got: \"poll\""
            .to_owned())
    );
}

/// The hint names the command as it was called.
#[test]
fn every_option_is_in_the_help() {
    let help = pgbench::options::help("pgrig bench", pgbench::Major::V19);
    assert!(help.contains("  pgrig bench [OPTION]... [DBNAME]\n"));
    let output = Command::new(pgbench_program()).arg("--help").output().expect("pgbench runs");
    let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
    let option = |line: &str| {
        let line = line.trim_start();
        let name = line.find("--").filter(|_| line.starts_with('-'))?;
        line[name..].split(' ').next().map(str::to_owned)
    };
    for option in theirs.lines().filter_map(option) {
        assert!(help.contains(&option), "{option}");
    }
    let end = "\n\nReport bugs to the maintainers of pgrig; it is not part of PostgreSQL. Include the \
               output of\n\"pgrig bench --version\" and \"pgrig check\", the whole command, and all \
               that it printed.\n";
    assert!(help.ends_with(end), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn tpcc_like_is_a_mix_of_five() {
    let options = run("-b tpcc -T 1 --check");
    let weights: Vec<u32> = options.scripts.iter().map(|script| script.weight).collect();
    assert_eq!((weights, options.ours.check), (vec![45, 43, 4, 4, 4], true));
    assert_eq!(run("-b t -t 1").scripts.len(), 1, "pgbench's names come first");
    assert_eq!(initialise("-i -b tpcc-like -s 3").tables, TableSet::Tpcc);
    assert_eq!(initialise("-i").tables, TableSet::Pgbench);
    let refused = |line: &str, why: &str| {
        let error = read_as("pgbench", &words(line)).expect_err(line);
        assert!(error.contains(why), "{line}: {error}");
    };
    refused("-i -b tpcc-like -q", "option -q is for pgbench's tables, not for those of tpcc-like");
    refused("-i -b tpcc-like -c 4", "cannot be used in initialization (-i) mode");
    refused("-i -b tpcb-like", "cannot be used in initialization (-i) mode");
    refused("-i --check", "cannot be used in initialization (-i) mode");
    refused("-t 1 -l --aggregate-last", "allowed only with --aggregate-interval");
}

/// `--as` names the pgbench whose options there are.
#[test]
fn each_version_has_its_options() {
    let has = |major, option: &str| {
        pgbench::options::help("pgbench", major).lines().any(|line| line.starts_with(option))
    };
    for (option, since) in
        [("  --continue-on-error", 19), ("  --exit-on-abort", 17), ("  -d, --dbname=", 16)]
    {
        for number in 15..=19 {
            let major = pgbench::Major::of_number(number).expect("known");
            assert_eq!(has(major, option), number >= since, "{option} in {number}");
        }
    }
    let old = run("--as=15 -d mydb");
    assert_eq!((old.debug, old.server.dbname.as_deref()), (true, Some("mydb")));
    let new = run("--as 16 -d mydb");
    assert_eq!((new.debug, new.server.dbname.as_deref()), (false, Some("mydb")));
    let unknown = read_as("pgbench", &["--as=14"]).expect_err("too old");
    assert!(unknown.starts_with("pgbench: error: invalid version of pgbench, expecting 15 to 19"));
}

/// The program itself: Debian's is a wrapper, whose name is not in the complaints.
fn pgbench_program() -> String {
    let folder = Command::new("pg_config").arg("--bindir").output();
    let folder = match folder {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => newest_in_debians_folders(),
    };
    format!("{folder}/pgbench")
}

fn newest_in_debians_folders() -> String {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let mut folders: Vec<_> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.retain(|folder| folder.join("pgbench").exists());
    folders.sort();
    folders.last().expect("pgbench is installed").display().to_string()
}
