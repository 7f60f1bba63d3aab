//! `pgrig bisect`: which commit made it slower?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bisect::{
    Bisection, BisectionEvent, BisectionRequest, BisectionState, BuildCommand, CommitVerdict,
    ComparisonStep, RatioThreshold, Repository, StepKind,
};
use import::BuildCache;
use measure::ComparisonOptions;
use report::BisectedStep;
use study::{ComparisonRequest, PairData};
use terms::duration;

use crate::arguments::BisectArguments;
use crate::command::compare;
use crate::complaint::Complaint;
use crate::exchange::put;
use crate::exit::ProgramExit;
use crate::live::Live;
use crate::{floor, studies};
use console::terminal;

pub(crate) fn bisect(arguments: &BisectArguments) -> Result<ProgramExit, Complaint> {
    if let Some(path) = &arguments.json {
        record::check_file(path)?;
    }
    let request = request(arguments)?;
    let commits = request.repository.commits(&arguments.good, &arguments.bad)?;
    let (state, directory) = match &arguments.resume {
        Some(directory) => (resumed(directory, arguments, &commits)?, directory.clone()),
        None => {
            let command = compare::command_line();
            let now = compare::now();
            let figure = arguments.figure.name();
            let state = BisectionState::new(&command, &now, figure, arguments.error, commits);
            let runs = Path::new(compare::RUNS);
            (state, record::make_directory(runs, arguments.out.as_deref(), &now, "bisect")?)
        }
    };
    let between = state.commits.len().saturating_sub(2);
    terminal::narrate(format_args!(
        "  commits         {between} between {} and {}",
        state.commits[0].words(),
        state.commits.last().expect("a bisection is between two commits").words()
    ));
    let control = console::interrupted(lab::end_labs);
    let live = Live::new();
    let mut next_line_s = 0.0;
    let mut observe = |event: BisectionEvent<'_>| match event {
        BisectionEvent::Comparing(event) => {
            if let measure::PairEvent::Progress(_) = event {
                compare::show(&event, request.common.precision, &live, &mut next_line_s);
            }
        }
        event => {
            next_line_s = 0.0;
            live.say(&line(&event));
        }
    };
    let compare = |request: &ComparisonRequest,
                   name: &str,
                   observe: &mut dyn FnMut(measure::PairEvent<'_>)| {
        bisect::compare_servers(request, &directory.join(name), &control, observe)
    };
    let found = bisect::bisect(&request, state, &directory, &control, &compare, &mut observe);
    live.end();
    let Bisection { state, is_interrupted } = match found {
        Ok(found) => found,
        Err(error) => {
            // What was measured is kept, and is gone on with.
            if let Ok(state) = BisectionState::read(&directory) {
                write_page(&state, &directory)?;
                if state.steps.is_empty() && arguments.out.is_none() && arguments.resume.is_none() {
                    let _ = std::fs::remove_dir_all(&directory);
                }
            }
            return Err(error.into());
        }
    };
    let page = write_page(&state, &directory)?;
    if let Some(path) = &arguments.json {
        put(path, &(state.json() + "\n"))?;
    }
    print(&state);
    terminal::narrate(format_args!("  report          {}", page.display()));
    if is_interrupted {
        let directory = directory.display();
        terminal::narrate(format_args!(
            "interrupted; go on with the same command and --resume {directory}"
        ));
    }
    let is_found = state.first_bad.is_some_and(|[first, last]| first == last);
    Ok(match (is_interrupted, is_found) {
        (true, _) if control.urgency() != load::StopUrgency::None => ProgramExit::Interrupted,
        (true, _) => ProgramExit::Incomplete,
        (false, true) => ProgramExit::Done,
        (false, false) => ProgramExit::CannotTell,
    })
}

fn request(arguments: &BisectArguments) -> Result<BisectionRequest, Complaint> {
    if arguments.build.is_empty() {
        return Err(Complaint::new("no command is given that builds a commit").hinted(Some(
            "give it behind --, as in: pgrig bisect GOOD BAD -S -c 8 -- ./build.sh",
        )));
    }
    let repository = Repository::open(&arguments.repository)?;
    let workload = compare::workload(&arguments.workload, "pgrig bisect")?;
    let cache = BuildCache::of_user()?;
    let data = match &arguments.data {
        Some(path) => PairData::File(path.clone()),
        None => PairData::Pgbench(workload.scale.unwrap_or(1)),
    };
    let build = BuildCommand { words: arguments.build.clone(), directory: cache.builds() };
    Ok(BisectionRequest {
        repository,
        build,
        data,
        sql: arguments.sql.clone(),
        settings: arguments.set.clone(),
        words: arguments.workload.join(" "),
        workload,
        figure: arguments.figure,
        common: ComparisonOptions {
            time_shares: BTreeMap::new(),
            name: None,
            is_self: false,
            decides: vec![arguments.figure],
            precision: 0.0,
            threshold: compare::THRESHOLD,
            by_threshold: false,
            is_planned: false,
            horizon: None,
            segment: None,
            until: None,
            differs: None,
            confidence: 1.0 - arguments.error,
            max_time: arguments.step_time,
            fail_on: None,
            has_profile: false,
            tail: [false; 2],
            floor: floor::on_this_machine(Path::new(compare::RUNS)),
            seed: arguments.seed.unwrap_or_else(compare::fresh_seed),
            command: compare::command_line(),
            started_at: compare::now(),
            commit: None,
        },
        analyzes: !arguments.no_analyze,
        program: studies::program()?,
        max_time: arguments.max_time,
    })
}

/// The state of a bisection that goes on, which must be one of the same commits.
fn resumed(
    directory: &Path,
    arguments: &BisectArguments,
    commits: &[bisect::Commit],
) -> Result<BisectionState, Complaint> {
    let state = BisectionState::read(directory)?;
    let differs = match () {
        () if state.commits != commits => Some("its commits are others"),
        () if state.figure != arguments.figure.name() => Some("its figure is another"),
        () if state.error != arguments.error => Some("its error is another"),
        () => None,
    };
    match differs {
        Some(what) => Err(bisect::Error::Other { directory: directory.to_owned(), what }.into()),
        None => Ok(state),
    }
}

fn line(event: &BisectionEvent<'_>) -> String {
    match event {
        BisectionEvent::Building(commit) => format!("  building        {}", commit.words()),
        BisectionEvent::Step { kind, commit, number: [number, most] } => {
            let what = match kind {
                StepKind::Effect => "the bad commit".to_owned(),
                StepKind::Identical => "the good commit against itself".to_owned(),
                StepKind::Search => commit.words(),
            };
            format!("  step {number} of {most:<4}  {what}")
        }
        BisectionEvent::Over(step, commit) => {
            let took = duration(step.seconds);
            format!("  {:<14}  {}{}  {took}", said(step), commit.words(), ratio(step))
        }
        BisectionEvent::Comparing(_) => String::new(),
    }
}

fn said(step: &ComparisonStep) -> &'static str {
    match (step.kind, step.verdict) {
        (StepKind::Effect, _) => "differs",
        (StepKind::Identical, CommitVerdict::Good) => "does not differ",
        (_, CommitVerdict::Good) => "good",
        (_, CommitVerdict::Bad) => "bad",
        (_, CommitVerdict::Skip) => "skipped",
    }
}

fn ratio(step: &ComparisonStep) -> String {
    let ratio = step.ratio.map(|[value, low, high]| format!("  {value:.3}× [{low:.3}, {high:.3}]"));
    let why = step.why.as_ref().map(|why| format!(": {why}"));
    // A step that was skipped has no ratio, and one that was not needs no reason.
    ratio.unwrap_or_default() + &why.unwrap_or_default()
}

fn print(state: &BisectionState) {
    terminal::result(&state.answer);
    terminal::result("");
    for step in &state.steps {
        let commit = state.commits[step.commit].words();
        terminal::result(format_args!("  {:<16}{commit}{}", said(step), ratio(step)));
    }
}

fn write_page(state: &BisectionState, directory: &Path) -> Result<PathBuf, Complaint> {
    let commits: Vec<String> = state.commits.iter().map(bisect::Commit::words).collect();
    let kind = |kind| match kind {
        StepKind::Effect => "good against bad",
        StepKind::Identical => "good against itself",
        StepKind::Search => "search",
    };
    let steps = state.steps.iter().map(|step| BisectedStep {
        commit: step.commit,
        kind: kind(step.kind).to_owned(),
        verdict: said(step).to_owned(),
        ratio: step.ratio.filter(|_| step.kind != StepKind::Identical),
        seconds: step.seconds,
        // A commit that was skipped was not compared, and its cell stays empty.
        record: step.record.clone().unwrap_or_default(),
    });
    let steps: Vec<BisectedStep> = steps.collect();
    let effect = state.step(StepKind::Effect).and_then(|step| step.ratio);
    let threshold = effect.map(|[value, ..]| RatioThreshold::of_effect(value).ratio());
    let answer =
        if state.answer.is_empty() { "The bisection has not ended" } else { &state.answer };
    let html = report::bisected(answer, &state.figure, &commits, &steps, threshold);
    let path = directory.join("report.html");
    put(&path, &html)?;
    Ok(path)
}
