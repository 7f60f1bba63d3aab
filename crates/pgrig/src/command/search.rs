//! `pgrig search`: the schedule of faults that breaks a promise, found and shrunk.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};

use console::terminal::{self, BAD, FAINT, UNSURE, styled};
use nemesis::{FaultCoverage, FaultSpace, ScheduleSearch, TrialOutcome, TrialPurpose};
use record::RunState;
use spec::{NemesisPlan, Study, StudyFolder, StudyProfile};
use study::{
    RecordPlace, SearchEvent, SearchRequest, SearchResult, StudyEvent, StudyRequest, StudyServers,
};
use terms::{counted, duration};

use crate::arguments::{SearchArguments, set};
use crate::command::check;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::studies::NamedStudy;
use crate::{fit, records, studies};

/// Searches, prints what was found, and writes it beside the record.
pub(crate) fn search(arguments: &SearchArguments) -> Result<ProgramExit, Complaint> {
    let asked = asked(arguments)?;
    if arguments.dry_run {
        return dry_run(&asked);
    }
    let points = asked.request.trials().into_iter().map(|trial| trial.point);
    check::tell_commands(&asked.request.folder, &study::commands(&asked.request.study, points));
    let control = console::interrupted(lab::end_labs);
    let seed = asked.request.study.seed;
    let ended = study::search(&asked, &control, &mut |event| show(&event, seed));
    let ended = match ended {
        Err(study::Error::DoesNotFit(preflight)) => return Err(fit::complaint(&preflight, None)),
        ended => ended?,
    };
    let directory = &ended.run.directory;
    let text = report(&ended, seed);
    record::attach(directory, "search.md", &text)?;
    let opened = records::open(directory)?;
    let written = records::write_report(&opened)?;
    terminal::result("");
    terminal::verbatim(text.trim_end());
    terminal::result("");
    terminal::verbatim(format_args!("  record   {}", directory.display()));
    terminal::verbatim(format_args!("  report   {}", written.display()));
    Ok(match &ended.run.state {
        RunState::Interrupted => {
            let again = opened.go_on(directory);
            terminal::narrate(format_args!("interrupted; go on with: {again}"));
            ProgramExit::Interrupted
        }
        RunState::Running | RunState::Broken(_) => ProgramExit::Incomplete,
        RunState::Done if ended.search.finding().is_some() => ProgramExit::DoesNotHold,
        RunState::Done if !ended.search.seen_once().is_empty() => ProgramExit::DoesNotHold,
        RunState::Done => ProgramExit::Done,
    })
}

fn asked(arguments: &SearchArguments) -> Result<SearchRequest, Complaint> {
    let generator = studies::program()?;
    let servers = StudyServers::Built {
        pg_bin: arguments.pg_bin.clone(),
        hosts: std::collections::BTreeMap::new(),
        cache: None,
    };
    let schedules = match (arguments.schedules, arguments.time) {
        (None, None) => Some(SCHEDULES),
        (schedules, _) => schedules,
    };
    let time = arguments.time;
    if let Some(directory) = &arguments.resume {
        let (request, repeats) = resumed(directory, servers, generator)?;
        return Ok(SearchRequest { request, schedules, time, repeats });
    }
    let study = arguments.study.as_deref().expect("clap asks for a study where no record goes on");
    let found = studies::find(study)?;
    let found = found.with(&set::all(&arguments.set));
    let profile = arguments.profile.map_or(StudyProfile::Quick, StudyProfile::from);
    let mut study = studies::parse(&found, profile)?;
    let fresh = || (!study.is_seed_given).then(fresh_seed);
    if let Some(seed) = arguments.seed.or_else(fresh) {
        study = study.with_seed(seed);
    }
    let place = match &arguments.out {
        Some(directory) => RecordPlace::Directory(directory.clone()),
        None => RecordPlace::Below(PathBuf::from("runs")),
    };
    let again = again(&found, arguments, profile, study.seed);
    let request = StudyRequest {
        folder: found.folder,
        study,
        rounds: None,
        only: arguments.only.clone(),
        trial: None,
        place,
        servers,
        generator,
        again,
    };
    Ok(SearchRequest { request, schedules, time, repeats: arguments.repeats })
}

/// The study of a record without its schedules, which are drawn again.
fn resumed(
    directory: &Path,
    servers: StudyServers,
    generator: PathBuf,
) -> Result<(StudyRequest, u64), Complaint> {
    let opened = records::open(directory)?;
    let header = opened.reader.header();
    let Some(terms) = header.search.clone() else {
        let what = format!("{} is the record of a run, and no search", directory.display());
        let hint = format!("go on with: {}", opened.go_on(directory));
        return Err(Complaint::new(what).hinted(Some(hint)));
    };
    let mut folder: StudyFolder = opened.reader.folder().clone();
    folder.files.remove(StudyFolder::SCHEDULES);
    let place = format!("{}/study/{}", directory.display(), header.study);
    let study = Study::parse(&folder, opened.study.profile)
        .map_err(|problems| Complaint::of_problems(&folder, &place, &problems))?;
    let request = StudyRequest {
        folder,
        study: study.with_seed(header.seed),
        rounds: None,
        only: Some(terms.trial),
        trial: None,
        place: RecordPlace::Resume(directory.to_owned()),
        servers,
        generator,
        again: header.again.clone(),
    };
    Ok((request, terms.repeats))
}

/// Short enough to be typed again.
fn fresh_seed() -> u64 {
    // The standard library seeds each of these from the operating system.
    RandomState::new().build_hasher().finish() % 1_000_000_000
}

/// The command that searches the same again.
fn again(
    found: &NamedStudy,
    arguments: &SearchArguments,
    profile: StudyProfile,
    seed: u64,
) -> String {
    let mut again = format!("pgrig search {}", found.place);
    if profile != StudyProfile::Quick {
        again.push_str(&format!(" --profile {profile}"));
    }
    again.push_str(&format!(" --seed {seed} --repeats {}", arguments.repeats));
    if let Some(schedules) = arguments.schedules {
        again.push_str(&format!(" --schedules {schedules}"));
    }
    if let Some(time) = arguments.time {
        again.push_str(&format!(" --for {}s", time.as_secs()));
    }
    for (name, value) in set::all(&arguments.set) {
        again.push_str(&format!(" --set '{name}={value}'"));
    }
    if let Some(pattern) = &arguments.only {
        again.push_str(&format!(" --only '{pattern}'"));
    }
    if let Some(folder) = &arguments.pg_bin {
        again.push_str(&format!(" --pg-bin {}", folder.display()));
    }
    again
}

fn dry_run(asked: &SearchRequest) -> Result<ProgramExit, Complaint> {
    let (point, plan, promises) = study::search_plan(&asked.request)?;
    let seed = asked.request.study.seed;
    terminal::result(format_args!("{point}, seed {seed}"));
    promises.iter().for_each(|promise| terminal::result(format_args!("  promise   {promise}")));
    for fault in &plan.space.faults {
        let victims = fault.victims.iter().map(|one| one.name.as_str()).collect::<Vec<_>>();
        terminal::result(format_args!("  fault     {}: {}", fault.name, victims.join(", ")));
    }
    for number in 1..=SHOWN {
        let drawn = plan.space.draw(seed, number);
        terminal::result(format_args!("  schedule {number}  {}", drawn.words(&plan.space)));
    }
    Ok(ProgramExit::Done)
}

/// Prints an event of a search.
fn show(event: &SearchEvent<'_>, seed: u64) {
    match event {
        SearchEvent::Begins { point, plan, promises, directory } => {
            terminal::narrate(format_args!("▸ search in {point}, seed {seed}"));
            let say = |label: &str, text: String| {
                terminal::narrate(styled(FAINT, format_args!("  {label:<15} {text}")));
            };
            say("record", directory.display().to_string());
            promises.iter().for_each(|promise| say("promise", promise.clone()));
            say("faults", faults(plan));
            terminal::narrate("");
        }
        SearchEvent::OfRun(StudyEvent::Prepared { what, seconds }) => {
            terminal::narrate(format_args!("  preparing       {what}  {}", duration(*seconds)));
        }
        SearchEvent::OfRun(StudyEvent::Note(note)) => {
            terminal::narrate(styled(FAINT, format_args!("  {note}")));
        }
        SearchEvent::OfRun(_) | SearchEvent::Asks { .. } => {}
        SearchEvent::Told { experiment, words, outcome, trial, is_known } => {
            let why = purpose(experiment.purpose);
            let (style, said) = match outcome {
                TrialOutcome::Kept => (FAINT, "kept".to_owned()),
                TrialOutcome::Broken(promises) => (BAD, format!("BROKEN: {}", promises.join("; "))),
                TrialOutcome::Untold => (UNSURE, format!("does not tell: {}", trial.ending.why())),
            };
            let known = if *is_known { " (from the record)" } else { "" };
            let anew =
                trial.made_anew.as_ref().map(|why| format!("  [made anew: {}]", first_line(why)));
            terminal::narrate(format_args!(
                "  {why:<15} {:>4}.{} {words}  {}{known}{}",
                experiment.number,
                experiment.run,
                styled(style, said),
                // Most go on with the servers of the one before.
                anew.unwrap_or_default()
            ));
        }
    }
}

fn purpose(purpose: TrialPurpose) -> &'static str {
    match purpose {
        TrialPurpose::Drawn => "drawn",
        TrialPurpose::Confirm => "again",
        TrialPurpose::Shrink(change) => change.name(),
        TrialPurpose::Rate => "rate",
    }
}

fn faults(plan: &NemesisPlan) -> String {
    plan.space.faults.iter().map(|fault| fault.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What was found and what was tried, as Markdown that reads well on a terminal.
fn report(ended: &SearchResult, seed: u64) -> String {
    let SearchResult { search, plan, point, run, made_anew, untold, found } = ended;
    let mut text = format!("# Search in {point}, seed {seed}\n\n");
    text += &format!(
        "{} drawn; of all trials, {} did not tell, and {} found the cluster not whole, so that it was made anew.\n\
         A search is not deterministic: the seed gives the same schedules, and the servers may act otherwise.\n\n",
        counted(search.schedules(), "schedule"),
        untold.len(),
        made_anew.len()
    );
    text += &finding(search, plan, found.as_deref());
    for once in search.seen_once() {
        let rate = once.rate.map_or_else(|| "no".to_owned(), nemesis::ViolationRate::words);
        text += &format!(
            "\n{} was broken once by schedule {}, and in {rate} further trials: {}\n",
            once.promise,
            once.drawn.0,
            once.drawn.1.words(&plan.space)
        );
    }
    text += &format!("\n## Tried\n\n{}", tried(search.coverage(), &plan.space));
    text += &said("Made anew", made_anew);
    text += &said("Trials that did not tell", untold);
    if let RunState::Broken(why) = &run.state {
        text += &format!("\nThe search could not go on: {why}\n");
    }
    text
}

fn finding(search: &ScheduleSearch, plan: &NemesisPlan, found: Option<&Path>) -> String {
    let Some(finding) = search.finding() else {
        let of = search.schedules().saturating_sub(search.untold());
        let rate = nemesis::ViolationRate { broken: search.seen_once().len() as u64, of };
        if rate.broken > 0 {
            return "No schedule broke a promise twice; what was seen once is below.\n".to_owned();
        }
        return format!(
            "No schedule broke a promise: {}. That holds for schedules like these, with these faults.\n",
            rate.words()
        );
    };
    let (number, smallest) = &finding.smallest;
    let mut text = format!("**{} is broken.**\n\n", finding.promise);
    text += &format!(
        "- drawn: schedule {}, {}: {}\n- it broke the promise in {} further trials\n",
        finding.drawn.0,
        counted(finding.drawn.1.actions() as u64, "action"),
        finding.drawn.1.words(&plan.space),
        finding.rate_drawn.words()
    );
    text += &format!(
        "- smallest: schedule {number}, {}, after {} smaller ones were tried: {}\n",
        counted(smallest.actions() as u64, "action"),
        finding.candidates,
        smallest.words(&plan.space)
    );
    text += &match finding.rate {
        Some(rate) => format!("- the smallest broke it in {}\n", rate.words()),
        None => "- how often the smallest breaks it was not asked yet\n".to_owned(),
    };
    text += &format!("\n```toml\n{}```\n", plan.text(smallest));
    if let Some(found) = found {
        text += &format!(
            "\nWithout the search: `pgrig run {} --only schedule_{number} --rounds 20`\n",
            found.display()
        );
    }
    text
}

/// The set: each fault with each victim, and which of them overlapped.
fn tried(coverage: &FaultCoverage, space: &FaultSpace) -> String {
    let name = |(fault, victim): (usize, usize)| {
        let fault = &space.faults[fault];
        format!("{} {}", fault.name, fault.victims[victim].name)
    };
    let pairs = FaultCoverage::pairs(space);
    let mut text = String::from(
        "| fault and victim | done | no such victim | overlapped by | not overlapped by |\n|---|---|---|---|---|\n",
    );
    for cell in space.cells() {
        let of_cell = pairs.iter().filter(|(earlier, _)| *earlier == cell);
        let (by, not): (Vec<_>, Vec<_>) = of_cell
            .map(|(_, later)| (*later, coverage.overlapped(cell, *later)))
            .partition(|(_, count)| *count > 0);
        let by = by.into_iter().map(|(later, count)| format!("{} ×{count}", name(later)));
        let not = not.into_iter().map(|(later, _)| name(later));
        let list =
            |names: Vec<String>| if names.is_empty() { "–".to_owned() } else { names.join(", ") };
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            name(cell),
            coverage.done(cell),
            coverage.skipped(cell),
            list(by.collect()),
            list(not.collect())
        );
    }
    let cells = space.cells();
    let done = cells.iter().filter(|cell| coverage.done(**cell) > 0).count();
    let overlapped = pairs.iter().filter(|(one, other)| coverage.overlapped(*one, *other) > 0);
    text += &format!(
        "\nFaults with victims: {done} of {} tried. Overlaps: {} of {} tried.\n",
        cells.len(),
        overlapped.count(),
        pairs.len()
    );
    text
}

fn said(title: &str, all: &[(usize, String)]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lines = all.iter().map(|(number, why)| format!("- trial {number}: {}\n", first_line(why)));
    format!("\n## {title}\n\n{}", lines.collect::<String>())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// Schedules where neither their number nor a time is given.
const SCHEDULES: u64 = 100;
/// Schedules that a dry run shows.
const SHOWN: u64 = 10;
