//! A record as commands use it: its study read again, its trials, its report.

use std::path::{Path, PathBuf};

use record::{RecordReader, Trial};
use report::{ChartedTrial, ExportedResults, Report};
use spec::{ROUNDS_MAX, Study, StudyProfile};
use verdict::{DiffSide, StudyVerdicts};

use crate::complaint::Complaint;

/// A record, opened, and the study as it was run.
pub(crate) struct Opened {
    pub(crate) reader: RecordReader,
    pub(crate) study: Study,
}

impl Opened {
    pub(crate) fn judge(&self) -> StudyVerdicts {
        let reader = &self.reader;
        verdict::judge_record(&self.study, reader.header(), reader.trials(), reader.pairs())
    }

    /// The record as one side of a difference.
    pub(crate) fn side(&self) -> DiffSide<'_> {
        let Opened { reader, study } = self;
        DiffSide { header: reader.header(), study, trials: reader.trials(), pairs: reader.pairs() }
    }

    /// The command that goes on with the run, on the same servers.
    pub(crate) fn go_on(&self, directory: &Path) -> String {
        let header = self.reader.header();
        to_go_on(directory, &header.again, header.search.is_some())
    }
}

/// The command that goes on with a run, from the one that runs it again (`command::run::again`), at whose end
/// the options stand that say where the servers are.
fn to_go_on(directory: &Path, again: &str, is_search: bool) -> String {
    const OF_SERVERS: [&str; 6] =
        [" --target ", " --pg-bin ", " --hosts ", " --push", " --on-host-loss ", " --node "];
    let first = OF_SERVERS.iter().filter_map(|option| again.find(option)).min();
    let servers = first.map_or("", |at| &again[at..]);
    let command = if is_search { "search" } else { "run" };
    format!("pgrig {command} --resume {}{servers}", directory.display())
}

pub(crate) fn open(directory: &Path) -> Result<Opened, Complaint> {
    let reader = RecordReader::open(directory)?;
    let header = reader.header();
    let profile: StudyProfile = header
        .profile
        .parse()
        .map_err(|why: String| Complaint::new(format!("reading {}: {why}", directory.display())))?;
    let place = format!("{}/study/{}", directory.display(), header.study);
    let study = Study::parse(reader.folder(), profile)
        .map_err(|problems| Complaint::of_problems(reader.folder(), &place, &problems))?;
    let study = study.with_seed(header.seed);
    let study = match header.rounds {
        Some(rounds @ 1..=ROUNDS_MAX) => study.with_rounds(rounds),
        Some(rounds) => {
            let what = format!("reading {}/record.json: {rounds} rounds", directory.display());
            return Err(Complaint::new(what).hinted(Some(format!(
                "a run has 1 to {ROUNDS_MAX} rounds; the file was changed"
            ))));
        }
        None => study,
    };
    let study = header.with_protocols(study);
    let study = match &header.comparison {
        Some(comparison) => comparison.study(&study).map_err(|why| {
            let what = format!("reading {}/record.json: {why}", directory.display());
            Complaint::new(what).hinted(Some("the file was changed"))
        })?,
        None => study,
    };
    Ok(Opened { reader, study })
}

/// Results of a record for other programs.
pub(crate) fn results(opened: &Opened) -> Result<ExportedResults, Complaint> {
    let reader = &opened.reader;
    let trials = reader.trials().iter().map(|trial| evidence(reader, trial));
    let report = Report::new(&opened.study, reader.header(), trials, reader.pairs())?;
    Ok(report.results())
}

/// The report as one HTML file.
pub(crate) fn page(opened: &Opened) -> Result<String, Complaint> {
    let reader = &opened.reader;
    let trials = reader.trials().iter().map(|trial| evidence(reader, trial));
    let report = Report::new(&opened.study, reader.header(), trials, reader.pairs())?;
    Ok(report.html())
}

/// Writes report.html, report.md, trials.csv and verdicts.csv beside the record; the page's path.
pub(crate) fn write_report(opened: &Opened) -> Result<PathBuf, Complaint> {
    let reader = &opened.reader;
    let trials = reader.trials().iter().map(|trial| evidence(reader, trial));
    let report = Report::new(&opened.study, reader.header(), trials, reader.pairs())?;
    let directory = reader.directory();
    record::attach(directory, "report.md", &report.markdown())?;
    record::attach(directory, "trials.csv", &report.trials_csv())?;
    record::attach(directory, "verdicts.csv", &report.verdicts_csv())?;
    Ok(record::attach(directory, "report.html", &report.html())?)
}

/// A trial as a page shows it: what is not shown is not kept in memory.
fn evidence(reader: &RecordReader, trial: &Trial) -> Result<ChartedTrial, record::Error> {
    let mut evidence = ChartedTrial::of(trial.clone());
    reader.intervals(trial, |interval| evidence.interval(interval))?;
    reader.samples(trial, |sample| evidence.sample(sample))?;
    reader.marks(trial, |mark| evidence.mark(mark))?;
    reader.logs(trial, |node, text| evidence.log(node, text))?;
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_where_its_servers_were() {
        let check = |again: &str, expected: &str| {
            let told = to_go_on(Path::new("runs/1"), again, false);
            assert_eq!(told, format!("pgrig run --resume runs/1{expected}"), "{again}");
        };
        check("pgrig run pgbench --seed 1", "");
        check(
            "pgrig run pgbench --profile smoke --seed 1 --hosts lab.toml --push --on-host-loss go-on",
            " --hosts lab.toml --push --on-host-loss go-on",
        );
        check("pgrig run x --seed 1 --only 'a/*' --pg-bin /opt/pg/bin", " --pg-bin /opt/pg/bin");
        check("pgrig run x --seed 1 --target URI", " --target URI");
    }
}
