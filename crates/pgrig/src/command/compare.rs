//! `pgrig compare`: two servers side by side.

pub(crate) mod series;
mod sources;

use std::path::Path;
use std::time::Duration;

use import::BuildCache;
use measure::{CONFIDENCE, ComparisonOptions, PairEvent};
use pgbench::options::{Invocation, RunOptions};
use record::comparison::{ComparedMetric, ComparisonStop, DataOrigin};
use server::shown_word;
use spec::StudyProfile;
use study::{
    ComparedLoad, ComparisonLoad, ComparisonRequest, PairData, ProductionOptions, SideOptions,
    VariantChoice, VariantPair,
};
use terms::duration;

use ::workload::CoveredScript;

use crate::arguments::{CompareArguments, Sampled, StudyArguments};
use crate::command::show;
use crate::complaint::Complaint;
use crate::exit::{self, ProgramExit};
use crate::live::Live;
use crate::scraped::{OfComparison, Scraped};
use crate::served::{self, ServedComparison};
use crate::{floor, records, studies};
use console::terminal;

pub(crate) fn compare(arguments: &CompareArguments) -> Result<ProgramExit, Complaint> {
    arguments.exchange.check()?;
    series::check(arguments)?;
    let mut request = request(arguments)?;
    let sources = sources::sources(arguments)?;
    if arguments.dry_run {
        return checked(&request, sources.is_some());
    }
    if let Some(path) = &arguments.json {
        record::check_file(path)?;
    }
    match &arguments.out {
        // Nothing is measured for a place that cannot be written.
        Some(out) => drop(record::make_directory(Path::new(RUNS), Some(out), "", "")?),
        None => record::check_directory(Path::new(RUNS))?,
    }
    let control = console::interrupted(lab::end_labs);
    if let Some((repository, sources)) = &sources {
        let built = sources::build(arguments, repository, sources, &mut request.sides, &control);
        if let (Err(_), Some(out)) = (&built, &arguments.out) {
            let _ = std::fs::remove_dir(out);
        }
        built?;
        request.common.commit = Some(sources[1].commit.hash.clone());
    }
    let mut page = ServedComparison::new(served::asked(arguments.serve, "pgrig compare")?);
    let mut scraped = Scraped::open(arguments.metrics.as_ref(), OfComparison::default())?;
    let live = Live::new();
    let mut next_line_s = 0.0;
    let mut observe = |event: PairEvent<'_>| {
        let line = show(&event, precision(arguments), &live, &mut next_line_s);
        page.say(&line);
        if let PairEvent::Progress(progress) = event {
            page.show(progress.looks);
            scraped.show(|figures| figures.look(&progress));
        }
    };
    if !arguments.clients.is_empty() {
        let compared = series::compare(arguments, &request, &control, &mut observe);
        live.end();
        let (directory, answer, exit) = compared.map_err(|complaint| match control.urgency() {
            load::StopUrgency::None => complaint,
            _ => interrupted(),
        })?;
        page.end(&directory, &answer);
        return Ok(exit);
    }
    let found = study::versus(&request, &control, &mut observe);
    live.end();
    if let (Err(_), Some(out)) = (&found, &arguments.out) {
        // Empty, unless somebody else has put something there.
        let _ = std::fs::remove_dir(out);
    }
    let found = match found {
        // What fails after that fails because of it.
        Err(_) if control.urgency() != load::StopUrgency::None => return Err(interrupted()),
        found => found?,
    };
    let stop = found.paired.shown.stop;
    let directory = found.save(Path::new(RUNS), arguments.out.as_deref())?;
    let opened = records::open(&directory)?;
    let judgement = opened.judge();
    let written = records::write_report(&opened)?;
    show::print(&opened, &judgement);
    if let Some(path) = &arguments.json {
        show::write_json(path, &opened, &judgement)?;
    }
    arguments.exchange.write(&opened)?;
    terminal::narrate(format_args!("  report          {}", written.display()));
    page.end(&directory, &judgement.answer);
    Ok(match stop {
        ComparisonStop::Interrupted => ProgramExit::Interrupted,
        ComparisonStop::Died => ProgramExit::Incomplete,
        _ => exit::of_comparison(&judgement.claims, request.common.fail_on),
    })
}

fn interrupted() -> Complaint {
    Complaint::new("interrupted before anything could be compared").exit(ProgramExit::Interrupted)
}

/// Below it lie records that were given no other place.
pub(crate) const RUNS: &str = "runs";

/// Says that a comparison could begin.
fn checked(request: &ComparisonRequest, is_built: bool) -> Result<ProgramExit, Complaint> {
    // What is not built yet has no programs that could be asked.
    if !is_built {
        request.check()?;
    }
    if let ComparisonLoad::Study(of) = &request.asked {
        let points = of.choice.points(&of.study).map_err(study::Error::from)?;
        let [a, b] = points.map(|index| &of.study.points[index].name.variant);
        terminal::narrate(format_args!("  A is variant {a}, B is variant {b}"));
    }
    terminal::result(
        "everything that is named is there and fits; nothing was built, no server was asked",
    );
    Ok(ProgramExit::Done)
}

fn request(arguments: &CompareArguments) -> Result<ComparisonRequest, Complaint> {
    Ok(ComparisonRequest {
        asked: match &arguments.study.study {
            Some(name) => of_study(arguments, name)?,
            None => options(arguments)?,
        },
        sides: sides(arguments),
        upgrade: arguments.b_upgrade,
        production: ProductionOptions {
            like: arguments.like.clone(),
            configuration: arguments.conf.clone(),
            locale: arguments.locale.clone(),
            without: arguments.without.clone(),
        },
        common: common(arguments)?,
        analyzes: !arguments.no_analyze,
        cache: arguments.keep_data.then(BuildCache::of_user).transpose()?,
        program: studies::program()?,
    })
}

fn of_study(arguments: &CompareArguments, name: &str) -> Result<ComparisonLoad, Complaint> {
    if let Some(word) = arguments.workload.first() {
        let what = format!("--study gives the workload, and {word} cannot be given as well");
        return Err(Complaint::new(what)
            .hinted(Some("choose one of the study's points: --scenario NAME --at AXIS=VALUE")));
    }
    let StudyArguments { scenario, at, a_variant, b_variant, study_profile, .. } = &arguments.study;
    let found = studies::find(name)?;
    let profile = study_profile.map_or(StudyProfile::Quick, StudyProfile::from);
    let choice = VariantChoice {
        scenario: scenario.clone(),
        at: at.clone(),
        variants: [a_variant.clone(), b_variant.clone()],
    };
    let study = studies::parse(&found, profile)?;
    Ok(ComparisonLoad::Study(Box::new(VariantPair { folder: found.folder, study, choice })))
}

fn sides(arguments: &CompareArguments) -> [SideOptions; 2] {
    let settings =
        |own: &[(String, String)]| arguments.both_set.iter().chain(own).cloned().collect();
    let a = SideOptions {
        conninfo: arguments.a_conninfo.clone(),
        bin: arguments.a_bin.clone(),
        source: None,
        settings: settings(&arguments.a_set),
        initdb: arguments.a_initdb.clone(),
        sql: arguments.a_sql.clone(),
    };
    let b = SideOptions {
        conninfo: arguments.b_conninfo.clone(),
        bin: arguments.b_bin.clone(),
        source: None,
        settings: settings(&arguments.b_set),
        initdb: arguments.b_initdb.clone(),
        sql: arguments.b_sql.clone(),
    };
    let nothing = SideOptions { settings: settings(&[]), ..SideOptions::default() };
    // --self says of one side what holds for both.
    if arguments.is_self && b == nothing { [a.clone(), a] } else { [a, b] }
}

fn options(arguments: &CompareArguments) -> Result<ComparisonLoad, Complaint> {
    let words = with_folder(arguments, &covered(arguments)?);
    // The servers are made for the largest number of clients.
    let clients = arguments.clients.iter().max().map(|most| ["-c".to_owned(), most.to_string()]);
    let with_clients = [&words[..], clients.as_ref().map_or(&[], |words| &words[..])].concat();
    let workload = workload(&with_clients, "pgrig compare")?;
    let data = match &arguments.data {
        Some(path) => PairData::File(path.clone()),
        None => PairData::Pgbench(workload.scale.unwrap_or(1)),
    };
    Ok(ComparisonLoad::Options(Box::new(ComparedLoad {
        data,
        database: arguments.database.clone(),
        no_init: arguments.no_init,
        words: words.join(" "),
        workload: Box::new(workload),
    })))
}

/// pgbench's options, with the scripts of the folder of `--workload` as if each was given by `-f`.
fn with_folder(arguments: &CompareArguments, covered: &[CoveredScript]) -> Vec<String> {
    let given =
        |one: &CoveredScript| ["-f".to_owned(), format!("{}@{}", one.path.display(), one.weight)];
    arguments.workload.iter().cloned().chain(covered.iter().flat_map(given)).collect()
}

/// The half-width that ends a comparison where none is asked for.
const PRECISION: f64 = 0.01;

fn precision(arguments: &CompareArguments) -> f64 {
    arguments.precision.unwrap_or(PRECISION)
}

/// The scripts of the folder of `--workload`; none without one.
fn covered(arguments: &CompareArguments) -> Result<Vec<CoveredScript>, Complaint> {
    let Some(folder) = &arguments.folder else { return Ok(Vec::new()) };
    ::workload::covered_scripts(folder).map_err(|error| Complaint::new(&error).hinted(error.hint()))
}

fn common(arguments: &CompareArguments) -> Result<ComparisonOptions, Complaint> {
    let share = |one: CoveredScript| Some((one.path.display().to_string(), one.time_share?));
    let loads = arguments.clients.len().max(1);
    Ok(ComparisonOptions {
        time_shares: covered(arguments)?.into_iter().filter_map(share).collect(),
        name: arguments.name.clone(),
        // Without a gate no figure decides.
        decides: arguments.gate.clone().map(|figures| figures.0).unwrap_or_default(),
        is_self: arguments.is_self,
        fail_on: arguments.gate.as_ref().map(|_| arguments.fail_on.into()),
        precision: precision(arguments),
        // What is asked for is to end early, or to make the most of the time.
        is_planned: arguments.precision.is_none() && arguments.threshold.is_none(),
        horizon: arguments.horizon,
        segment: arguments.segment,
        threshold: arguments.threshold.unwrap_or(THRESHOLD),
        by_threshold: arguments.threshold.is_some(),
        has_profile: arguments.profile,
        tail: arguments.tail.map_or([false; 2], Sampled::sides),
        until: None,
        differs: Some(arguments.differs.clone()),
        // The confidence holds for all loads together (Bonferroni).
        confidence: 1.0 - (1.0 - CONFIDENCE) / loads as f64,
        max_time: arguments.max_time / loads as u32,
        floor: floor::on_this_machine(Path::new(RUNS)),
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        command: command_line(),
        started_at: now(),
        commit: std::env::var("GITHUB_SHA").ok().filter(|commit| !commit.is_empty()),
    })
}

/// This program's command line, without passwords.
pub(crate) fn command_line() -> String {
    let words: Vec<String> = std::env::args().map(|word| shown_word(&word).into_owned()).collect();
    words.join(" ")
}

/// Wall clock, RFC 3339.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A difference that is too small to act on, as a share.
pub(crate) const THRESHOLD: f64 = 0.03;

pub(crate) fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_micros() as u64 % 1_000_000
}

/// pgbench's part of the command line.
pub(crate) fn workload(words: &[String], command: &str) -> Result<RunOptions, Complaint> {
    let invocation = Invocation { command, follows_server: true, ..Invocation::of(words, None) };
    let unfit = || Complaint::new("a comparison needs pgbench options for a run, not for -i");
    match pgbench::options::Request::read(&invocation) {
        Ok(pgbench::options::Request::Run(options)) => Ok(*options),
        Ok(_) => Err(unfit().hinted(Some("both sides are filled at the scale of -s"))),
        Err(complaint) => Err(Complaint::new(complaint.message()).hinted(complaint.hint())),
    }
}

/// Seconds between two lines of progress where a line cannot be replaced, as in the log of a CI job.
const LINE_S: f64 = 60.0;

/// Says what happens, and returns it.
pub(crate) fn show(
    event: &PairEvent<'_>,
    precision: f64,
    live: &Live,
    next_line_s: &mut f64,
) -> String {
    let line = line(event, precision);
    match event {
        PairEvent::Progress(progress) if !live.is_live() => {
            let has_interval = progress.figures.iter().any(|figure| figure.ratio.is_some());
            if has_interval && progress.seconds >= *next_line_s {
                *next_line_s = progress.seconds + LINE_S;
                live.say(&line);
            }
        }
        PairEvent::Progress(_) => live.now(&line),
        _ => live.say(&line),
    }
    line
}

fn line(event: &PairEvent<'_>, precision: f64) -> String {
    match event {
        PairEvent::Building { outside: 0 } => {
            "  building        two servers with the same data".to_owned()
        }
        PairEvent::Building { outside: 1 } => {
            "  building        one server, and seeing that yours has the same data".to_owned()
        }
        PairEvent::Building { .. } => {
            "  connecting      to both servers, and seeing that their data are the same".to_owned()
        }
        PairEvent::Given(words) => format!("  ground          {words}"),
        PairEvent::Crowd(words) => format!("  busy            {words}"),
        PairEvent::Built { versions: [a, b], scale, data, seconds } => {
            let data = match data {
                DataOrigin::Copied => "the same files",
                DataOrigin::LoadedTwice => "the same data, made twice from the same seed",
                DataOrigin::Found => "the same data, as they were",
                DataOrigin::Upgraded => "A's data, upgraded by pg_upgrade for B",
            };
            let scale = scale.map_or(String::new(), |scale| format!("scale {scale}, "));
            let took = duration(*seconds);
            format!("  built           A PostgreSQL {a}, B PostgreSQL {b}, {scale}{data}  {took}")
        }
        PairEvent::Load { clients, number: [number, all] } => {
            let clients = terms::counted((*clients).into(), "client");
            format!("  load            {number} of {all}: {clients} a side")
        }
        PairEvent::Pilot { precision, max_time } => format!(
            "  pilot           to find the length of a block; measuring stops at ± {} %, or after {}",
            precision * 100.0,
            duration(max_time.as_secs_f64())
        ),
        PairEvent::Planned { begun, forty_pairs_s, notes } => {
            let (blocks, takes) = (begun.blocks(), duration(*forty_pairs_s));
            let mut line =
                format!("  measuring       in {blocks}; 40 pairs take about {takes} here");
            for note in *notes {
                line.push_str("\n                  ");
                line.push_str(note);
            }
            line
        }
        PairEvent::Outlook(note) => format!("  measuring       {note}"),
        PairEvent::Progress(progress) => {
            let mut line = format!("  comparing       {} pairs   B ÷ A ", progress.pairs);
            for metric in [ComparedMetric::Throughput, ComparedMetric::P99, ComparedMetric::Cpu] {
                let figure = progress.figures.iter().find(|figure| figure.metric == metric);
                if let Some(ratio) = figure.and_then(|figure| figure.ratio) {
                    let (value, low, high) = (ratio.point, ratio.low, ratio.high);
                    let label = metric.label();
                    line.push_str(&format!(" {label} {value:.3} [{low:.3}, {high:.3}]  "));
                }
            }
            let (took, stops) = (duration(progress.seconds), precision * 100.0);
            match precision > 0.0 {
                true => format!("{line} {took}, stops at ± {stops} %"),
                false => format!("{line} {took}"),
            }
        }
    }
}
