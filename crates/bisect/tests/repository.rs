//! Bisections of a real git repository: its commits are built, and what a comparison would say of them is
//! known.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bisect::{
    BisectionRequest, BisectionState, BuildCommand, BuildSource, CommitChanges, CommitComparison,
    CommitVerdict, Error, Repository, StepKind, bisect,
};
use load::LoadControl;
use measure::ComparisonOptions;
use pgbench::options::Invocation;
use record::comparison::{ComparedMetric, NoiseFloor};
use study::PairData;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with ten commits after the tag v1. The sixth makes it slower, and the fourth and the
/// eighth cannot be built.
fn repository(directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory");
    git(directory, &["init", "--quiet", "--initial-branch=main"]);
    let commit = |name: &str, speed: &str| {
        std::fs::write(directory.join("speed"), speed).expect("a file");
        git(directory, &["add", "speed"]);
        git(directory, &["commit", "--quiet", "--allow-empty", "--message", name]);
    };
    commit("the first", "1.0");
    git(directory, &["tag", "v1"]);
    for number in 1..=10 {
        let speed = match number {
            4 | 8 => "broken",
            ..6 => "1.0",
            _ => "0.9",
        };
        commit(&format!("change {number}"), speed);
    }
}

/// The build writes down what it was called for, and fails where it finds no number.
const BUILD: &str =
    "echo $PGRIG_COMMIT >> $COUNTED; grep -q broken speed && { echo no >&2; exit 1; }; true";

fn request(repository: &Path, builds: &Path, counted: &Path) -> BisectionRequest {
    let words = ["-S", "-c", "2"].map(str::to_owned);
    let invocation = Invocation {
        command: "pgrig bisect",
        follows_server: true,
        ..Invocation::of(&words, None)
    };
    let Ok(pgbench::options::Request::Run(workload)) = pgbench::options::Request::read(&invocation)
    else {
        panic!("options of a run");
    };
    let line = BUILD.replace("$COUNTED", &counted.display().to_string());
    BisectionRequest {
        repository: Repository::open(repository).expect("a repository"),
        build: BuildCommand { words: vec![line], directory: builds.to_owned() },
        data: PairData::Pgbench(1),
        sql: Some(PathBuf::from("{}/speed")),
        settings: Vec::new(),
        workload: *workload,
        words: words.join(" "),
        figure: ComparedMetric::Throughput,
        common: ComparisonOptions {
            time_shares: BTreeMap::new(),
            name: None,
            is_self: false,
            decides: Vec::new(),
            precision: 0.01,
            threshold: 0.03,
            by_threshold: false,
            is_planned: false,
            horizon: None,
            segment: None,
            until: None,
            differs: None,
            confidence: 0.95,
            max_time: Duration::from_secs(60),
            fail_on: None,
            has_profile: false,
            tail: [false; 2],
            floor: NoiseFloor::default(),
            seed: 1,
            command: String::new(),
            started_at: String::new(),
            commit: None,
        },
        analyzes: true,
        program: PathBuf::from("pgrig"),
        max_time: None,
    }
}

/// What a comparison of two commits would show: their speeds are in their trees.
fn compared(request: &study::ComparisonRequest) -> CommitComparison {
    let speed = |side: usize| -> f64 {
        let path = request.sides[side].sql.as_ref().expect("a file of the commit");
        std::fs::read_to_string(path).expect("the file").parse().expect("a number")
    };
    let ratio = speed(1) / speed(0);
    CommitComparison { ratio: Some([ratio, ratio * 0.99, ratio * 1.01]), refusal: None }
}

#[test]
fn the_first_bad_commit_is_found_around_commits_that_cannot_be_built_and_after_an_interruption() {
    let desk = tempfile::tempdir().expect("a directory");
    let at = |name: &str| desk.path().join(name);
    repository(&at("repository"));
    let before = git(&at("repository"), &["status", "--porcelain", "--branch"]);
    let request = request(&at("repository"), &at("builds"), &at("counted"));
    let commits = request.repository.commits("v1", "main").expect("commits");
    assert_eq!(commits.len(), 11);
    assert_eq!(commits[6].subject, "change 6");
    std::fs::create_dir(at("out")).expect("a directory");

    // Interrupted in its third comparison.
    let control = LoadControl::new();
    let count = Cell::new(0);
    let state = BisectionState::new("command", "2026-11-25T00:00:00Z", "throughput", 0.05, commits);
    let mut ignore = |_: bisect::BisectionEvent<'_>| {};
    let compare =
        |request: &study::ComparisonRequest, _: &str, _: &mut dyn FnMut(measure::PairEvent<'_>)| {
            count.set(count.get() + 1);
            if count.get() == 3 {
                control.interrupt();
                return Err(study::Error::Interrupted { doing: "loading the servers" });
            }
            Ok(compared(request))
        };
    let found = bisect(&request, state, &at("out"), &control, &compare, &mut ignore);
    let found = found.expect("what is known so far");
    assert!(found.is_interrupted && found.state.steps.len() == 2, "{:?}", found.state.steps);

    // It goes on where it was.
    let state = BisectionState::read(&at("out")).expect("the state");
    assert_eq!(state, found.state);
    let control = LoadControl::new();
    let compare =
        |request: &study::ComparisonRequest, _: &str, _: &mut dyn FnMut(measure::PairEvent<'_>)| {
            Ok(compared(request))
        };
    let found = bisect(&request, state, &at("out"), &control, &compare, &mut ignore);
    let state = found.expect("an answer").state;
    assert_eq!(state.first_bad, Some([6, 6]), "{:?}", state.steps);
    assert!(
        state.answer.contains("change 6") && state.answer.contains("at most"),
        "{}",
        state.answer
    );
    assert!(state.error_used <= 0.05, "{}", state.error_used);
    let skipped = state.steps.iter().filter(|step| step.verdict == CommitVerdict::Skip);
    assert!(skipped.clone().all(|step| step.why.as_ref().is_some_and(|why| why.contains("no"))));
    assert!(skipped.count() <= 2);
    assert_eq!(state.step(StepKind::Identical).map(|step| step.commit), Some(0));

    // Each commit was built once, and the repository is as it was.
    let counted = std::fs::read_to_string(at("counted")).expect("builds");
    let mut hashes: Vec<&str> = counted.lines().collect();
    let n = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    let broken = state.steps.iter().filter(|step| step.verdict == CommitVerdict::Skip).count();
    assert!(n <= hashes.len() + broken, "{counted}");
    assert_eq!(git(&at("repository"), &["status", "--porcelain", "--branch"]), before);
    assert_eq!(git(&at("repository"), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn commits_that_do_not_fit_are_refused_before_anything_is_built() {
    let desk = tempfile::tempdir().expect("a directory");
    let at = |name: &str| desk.path().join(name);
    repository(&at("repository"));
    let open = || Repository::open(&at("repository")).expect("a repository");
    let check = |good: &str, bad: &str, expected: fn(&Error) -> bool| {
        let error = open().commits(good, bad).expect_err("no commits");
        assert!(expected(&error) && error.hint().is_some(), "{good}..{bad}: {error:?}");
    };
    check("main", "v1", |error| matches!(error, Error::NotAncestor { .. }));
    check("v1", "v1", |error| matches!(error, Error::SameCommit { .. }));
    check("v1", "no-such", |error| matches!(error, Error::Git { .. }));
    check("--help", "v1", |error| matches!(error, Error::Git { .. }));
    assert!(Repository::open(Path::new("/")).is_err());
    let missing = Repository::open(&at("missing"));
    assert!(matches!(missing, Err(Error::Directory { .. })), "{missing:?}");

    // A bad commit that is as fast as the good one.
    let request = request(&at("repository"), &at("builds"), &at("counted"));
    let commits = request.repository.commits("v1", "main~5").expect("commits");
    let state = BisectionState::new("command", "2026-11-25T00:00:00Z", "throughput", 0.05, commits);
    std::fs::create_dir(at("out")).expect("a directory");
    let compare =
        |request: &study::ComparisonRequest, _: &str, _: &mut dyn FnMut(measure::PairEvent<'_>)| {
            Ok(compared(request))
        };
    let found = bisect(&request, state, &at("out"), &LoadControl::new(), &compare, &mut |_| {});
    let error = found.expect_err("no difference");
    assert!(matches!(error, Error::NoEffect { .. }), "{error}");
}

#[test]
fn a_preflight_that_failed_is_measured_again() {
    let desk = tempfile::tempdir().expect("a directory");
    let at = |name: &str| desk.path().join(name);
    repository(&at("repository"));
    std::fs::create_dir(at("out")).expect("a directory");
    let mut request = request(&at("repository"), &at("builds"), &at("counted"));
    let commits = request.repository.commits("v1", "main").expect("commits");
    let mut state =
        BisectionState::new("command", "2026-11-25T00:00:00Z", "throughput", 0.05, commits);
    // So many steps have been measured when it ends; the last of these shows too little.
    let check = |request: &_, state: BisectionState, width: f64, until: usize| {
        let compare = |request: &study::ComparisonRequest,
                       _: &str,
                       _: &mut dyn FnMut(measure::PairEvent<'_>)| {
            let CommitComparison { ratio: Some([value, ..]), refusal } = compared(request) else {
                panic!("no ratio")
            };
            Ok(CommitComparison { ratio: Some([value, value / width, value * width]), refusal })
        };
        let found = bisect(request, state, &at("out"), &LoadControl::new(), &compare, &mut |_| {});
        let state = BisectionState::read(&at("out")).expect("the state");
        assert_eq!(state.steps.len(), until, "{:?}", state.steps);
        (found.map(|found| found.state.first_bad), state)
    };
    for steps in [1, 2] {
        let (found, after) = check(&request, state, 2.0, steps);
        assert!(matches!(found, Err(Error::NoEffect { .. })), "{found:?}");
        state = after;
    }
    // Out of time, it begins no step either.
    request.max_time = Some(Duration::ZERO);
    let (found, after) = check(&request, state, 1.01, 2);
    assert!(matches!(found, Ok(None)), "{found:?}");
    request.max_time = None;
    let compare =
        |request: &study::ComparisonRequest, _: &str, _: &mut dyn FnMut(measure::PairEvent<'_>)| {
            Ok(compared(request))
        };
    let found = bisect(&request, after, &at("out"), &LoadControl::new(), &compare, &mut |_| {});
    let state = found.expect("an answer").state;
    assert_eq!(state.first_bad, Some([6, 6]), "{:?}", state.steps);
    let kinds: Vec<StepKind> = state.steps.iter().take(4).map(|step| step.kind).collect();
    assert_eq!(kinds, [StepKind::Effect, StepKind::Effect, StepKind::Effect, StepKind::Identical]);
}

#[test]
fn a_commit_a_patch_and_a_working_directory_are_built_and_the_repository_stays_as_it_is() {
    let desk = tempfile::tempdir().expect("a directory");
    let at = |name: &str| desk.path().join(name);
    repository(&at("repository"));
    std::fs::write(at("repository/speed"), "2.0").expect("a file");
    std::fs::write(at("fix.patch"), git(&at("repository"), &["diff"]) + "\n").expect("a patch");
    std::fs::write(at("repository/new"), "more").expect("a file");
    let status = || git(&at("repository"), &["status", "--porcelain"]);
    let before = status();
    let open = Repository::open(&at("repository")).expect("a repository");
    let build = BuildCommand {
        words: vec![format!("echo x >> {}", at("counted").display())],
        directory: at("builds"),
    };
    let check =
        |name: &str, changes: Option<CommitChanges>, speed: &str, new: bool, words: &str| {
            let source = BuildSource { commit: open.commit(name).expect("a commit"), changes };
            for _ in 0..2 {
                let tree = open.build(&source, &build, &|| false).expect("a build").tree;
                assert_eq!(std::fs::read_to_string(tree.join("speed")).expect("a file"), speed);
                assert_eq!(tree.join("new").exists(), new, "{words}");
            }
            assert!(source.words().ends_with(words), "{}", source.words());
        };
    check("v1", None, "1.0", false, " the first");
    let patch = || CommitChanges::of_file(&at("fix.patch")).expect("a patch");
    let name = format!(" change 10, with {}", at("fix.patch").display());
    check("main", Some(patch()), "2.0", false, &name);
    let dirty = open.uncommitted().expect("changes");
    check("HEAD", Some(dirty), "2.0", true, ", with what is not committed");
    // Each was built once.
    assert_eq!(std::fs::read_to_string(at("counted")).expect("builds").lines().count(), 3);
    assert_eq!(status(), before);
    let v1 = BuildSource { commit: open.commit("v1").expect("a commit"), changes: Some(patch()) };
    let error = open.build(&v1, &build, &|| false).expect_err("another line stands there");
    assert!(error.to_string().contains("fix.patch does not apply"), "{error}");
    git(&at("repository"), &["checkout", "--quiet", "--", "speed"]);
    std::fs::remove_file(at("repository/new")).expect("a file");
    assert!(matches!(open.uncommitted(), Err(Error::Clean { .. })));
}
