//! `pgrig compare --clients`: the same two servers with one number of clients after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use load::{LoadControl, StopUrgency};
use measure::PairEvent;
use record::comparison::{
    ComparedMetric, ComparisonStop, FigureVerdict, MetricRatio, PairResults, WaitKindShare,
};
use serde_json::{Value, json};
use study::{ComparisonLoad, ComparisonRequest};

use crate::arguments::CompareArguments;
use crate::command::show;
use crate::compared;
use crate::complaint::Complaint;
use crate::exchange::put;
use crate::exit::{self, ProgramExit};
use crate::records::{self, Opened};
use console::terminal::{self, BAD, FAINT, GOOD, STRONG, UNSURE, styled};

/// The name of the folder of a record in the folder of its series, without the number of clients.
const FOLDER: &str = "clients-";

/// Refuses what several comparisons cannot have.
pub(super) fn check(arguments: &CompareArguments) -> Result<(), Complaint> {
    let counts: BTreeSet<u32> = arguments.clients.iter().copied().collect();
    if counts.len() < arguments.clients.len() {
        let given = arguments.clients.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        return Err(Complaint::new(format!("--clients {given}: a number is there twice"))
            .hinted(Some("give each number once")));
    }
    let has_client = |word: &String| word.starts_with("--client=");
    if !counts.is_empty() && arguments.workload.iter().any(has_client) {
        let what = "-c gives one number of clients, and --clients several";
        return Err(Complaint::new(what).hinted(Some("leave one of them out")));
    }
    if !counts.is_empty() && arguments.exchange.is_asked() {
        let what = "files for CI are of one comparison, and --clients makes several";
        let hint = "write those of a record afterwards: pgrig show OUT/clients-N --junit FILE";
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    Ok(())
}

/// Compares with each number of clients; the folder of the records, what their answers say together, and the exit code.
pub(super) fn compare(
    arguments: &CompareArguments,
    request: &ComparisonRequest,
    control: &LoadControl,
    observe: &mut dyn FnMut(PairEvent<'_>),
) -> Result<(PathBuf, String, ProgramExit), Complaint> {
    let ComparisonLoad::Options(options) = &request.asked else {
        return Err(Complaint::new("--clients cannot be given with --study"));
    };
    let with = |clients: &u32| ComparisonLoad::Options(Box::new(options.with_clients(*clients)));
    let loads: Vec<ComparisonLoad> = arguments.clients.iter().map(with).collect();
    let (runs, started_at) = (Path::new(super::RUNS), &request.common.started_at);
    let directory = record::make_directory(runs, arguments.out.as_deref(), started_at, "compare")?;
    let mut reports = Vec::new();
    let ended = study::versus_loads(request, &loads, control, observe, &mut |found| {
        let place = directory.join(format!("{FOLDER}{}", found.paired.shown.clients));
        found.save(&directory, Some(&place))?;
        reports.push(place);
        Ok(())
    });
    if reports.is_empty() {
        // It is empty, unless somebody else has put something there.
        let _ = std::fs::remove_dir(&directory);
        return Err(match ended {
            Err(error) => error.into(),
            Ok(()) => Complaint::new("nothing was compared"),
        });
    }
    let mut series = ClientsSeries::default();
    for place in &reports {
        let row = ClientsRow::open(place)?;
        records::write_report(&row.opened)?;
        series.rows.push(row);
    }
    series.print();
    if let Some(path) = &arguments.json {
        put(path, &terms::escaped(&format!("{:#}\n", series.json())))?;
    }
    terminal::narrate(format_args!(
        "  reports         {}/{FOLDER}*/report.html",
        directory.display()
    ));
    let answer = series.answer();
    // The results until then are told before the reason why there are no more.
    let exit = match ended {
        Ok(()) => series.exit(request.common.fail_on),
        Err(_) if control.urgency() != StopUrgency::None => ProgramExit::Interrupted,
        Err(error) => return Err(error.into()),
    };
    Ok((directory, answer, exit))
}

/// The series in a folder whose records are one, from the smallest number of clients on; none in another folder.
pub(crate) fn in_folder(records: &[PathBuf]) -> Result<Option<ClientsSeries>, Complaint> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(FOLDER))
    };
    if records.len() < 2 || !records.iter().all(is_one) {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for path in records {
        rows.push(ClientsRow::open(path)?);
    }
    rows.sort_by_key(|row| row.shown().clients);
    Ok(Some(ClientsSeries { rows }))
}

/// The same two sides with several numbers of clients.
#[derive(Default)]
pub(crate) struct ClientsSeries {
    rows: Vec<ClientsRow>,
}

/// A comparison with one number of clients.
struct ClientsRow {
    place: PathBuf,
    opened: Opened,
}

impl ClientsRow {
    fn open(place: &Path) -> Result<ClientsRow, Complaint> {
        let opened = records::open(place)?;
        match opened.reader.pairs() {
            [_] if opened.reader.header().comparison.is_some() => {
                Ok(ClientsRow { place: place.to_owned(), opened })
            }
            _ => {
                let what = format!("{} is no record of pgrig compare", place.display());
                Err(Complaint::new(what).hinted(Some(
                    "show it by itself: pgrig show DIR; folders clients-N are of --clients",
                )))
            }
        }
    }

    fn shown(&self) -> &PairResults {
        &self.opened.reader.pairs()[0].shown
    }

    /// The metric that the answer begins with.
    fn headline(&self) -> ComparedMetric {
        self.opened
            .reader
            .header()
            .comparison
            .as_ref()
            .map_or(ComparedMetric::Throughput, |one| one.headline())
    }

    fn verdict(&self) -> ClientsVerdict {
        let shown = self.shown();
        match shown.figure(self.headline()) {
            _ if shown.stop == ComparisonStop::OtherWork => ClientsVerdict::OtherWork,
            _ if shown.stop == ComparisonStop::Died => ClientsVerdict::Died,
            Some(figure) => ClientsVerdict::Of(figure.verdict),
            None => ClientsVerdict::Of(FigureVerdict::CannotTell),
        }
    }

    /// B ÷ A of a metric, in words.
    fn ratio(&self, metric: ComparedMetric) -> String {
        let ratio = self.shown().figure(metric).and_then(|figure| figure.b_over_a.as_ref());
        ratio.map_or_else(|| "–".to_owned(), MetricRatio::words)
    }

    /// The wait event whose share of the clients' time differs most, of those that the slower side has more
    /// of: what it has less of is what it had no time for. A record has the largest difference first.
    fn wait(&self) -> String {
        let is_cause = |wait: &&WaitKindShare| match self.verdict() {
            ClientsVerdict::Of(FigureVerdict::Worse) => wait.b > wait.a,
            ClientsVerdict::Of(FigureVerdict::Better) => wait.a > wait.b,
            _ => true,
        };
        match self.shown().waits.iter().find(is_cause).filter(|wait| compared::is_told(wait)) {
            Some(wait) => {
                format!("{} {:.0} % → {:.0} %", wait.event, wait.a * 100.0, wait.b * 100.0)
            }
            None => "–".to_owned(),
        }
    }
}

/// What a number of clients shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientsVerdict {
    /// The verdict of the figure that the answer begins with.
    Of(FigureVerdict),
    /// B does something else than A.
    OtherWork,
    /// A client failed.
    Died,
}

impl ClientsVerdict {
    /// In the order in which the answer names them.
    const ALL: [ClientsVerdict; 6] = [
        ClientsVerdict::Died,
        ClientsVerdict::OtherWork,
        ClientsVerdict::Of(FigureVerdict::Worse),
        ClientsVerdict::Of(FigureVerdict::Better),
        ClientsVerdict::Of(FigureVerdict::Equal),
        ClientsVerdict::Of(FigureVerdict::CannotTell),
    ];

    fn words(self) -> &'static str {
        match self {
            ClientsVerdict::Of(verdict) => verdict.words(),
            ClientsVerdict::OtherWork => "does something else",
            ClientsVerdict::Died => "failed",
        }
    }

    fn styled(self) -> String {
        let words = self.words();
        match self {
            ClientsVerdict::Of(FigureVerdict::Better) => styled(GOOD, words),
            ClientsVerdict::Of(FigureVerdict::Equal) => words.to_owned(),
            ClientsVerdict::Of(FigureVerdict::CannotTell) => styled(UNSURE, words),
            ClientsVerdict::Of(FigureVerdict::Worse)
            | ClientsVerdict::OtherWork
            | ClientsVerdict::Died => styled(BAD, words),
        }
    }
}

impl ClientsSeries {
    /// `By number of clients, throughput of B against A is: worse with 32 and 128; equal with 1 and 8.`
    fn answer(&self) -> String {
        let Some(first) = self.rows.first() else { return "Nothing was compared.".to_owned() };
        let clients_of = |verdict: ClientsVerdict| {
            let of_it = self.rows.iter().filter(|row| row.verdict() == verdict);
            of_it.map(|row| terms::grouped(row.shown().clients.into())).collect::<Vec<_>>()
        };
        let parts = ClientsVerdict::ALL.iter().filter_map(|verdict| {
            let clients = clients_of(*verdict);
            let (last, others) = clients.split_last()?;
            let listed = match others.is_empty() {
                true => last.clone(),
                false => format!("{} and {last}", others.join(", ")),
            };
            Some(format!("{} with {listed}", verdict.words()))
        });
        let parts = parts.collect::<Vec<_>>().join("; ");
        format!("By number of clients, {} of B against A is: {parts}.", first.headline().words())
    }

    pub(crate) fn print(&self) {
        // A series that was interrupted before its first comparison was over has nothing to show.
        let Some(first) = self.rows.first() else { return };
        if let Some(comparison) = &first.opened.reader.header().comparison {
            compared::print_sides(comparison);
        }
        let headline = first.headline();
        let tail =
            if headline == ComparedMetric::P99 { ComparedMetric::P50 } else { ComparedMetric::P99 };
        terminal::result("");
        terminal::result(styled(STRONG, self.answer()));
        terminal::result("");
        let [ratio, tail_ratio] =
            [headline, tail].map(|metric| format!("{}, B ÷ A", metric.words()));
        let head = format!(
            "  {:>8}{:>12}{:>12}   {ratio:<26}{:<14}{tail_ratio:<26}waits, A → B",
            "clients", "A", "B", ""
        );
        terminal::result(styled(STRONG, head.trim_end()));
        for row in &self.rows {
            let side = |of: fn(&record::comparison::ComparisonFigure) -> f64| {
                row.shown()
                    .figure(headline)
                    .map_or_else(|| "–".to_owned(), |it| terms::figure(of(it)))
            };
            let (a, b) = (side(|figure| figure.a), side(|figure| figure.b));
            // A style has a length of its own.
            let verdict = row.verdict();
            let gap = " ".repeat(14_usize.saturating_sub(verdict.words().chars().count()));
            terminal::result(format_args!(
                "  {:>8}{a:>12}{b:>12}   {:<26}{}{gap}{:<26}{}",
                row.shown().clients,
                row.ratio(headline),
                verdict.styled(),
                row.ratio(tail),
                row.wait(),
            ));
        }
        let percent = (measure::CONFIDENCE * 1e4).round() / 1e2;
        let note = format!(
            "  The intervals of the figures that decide hold together at {percent} % over all numbers of clients. Waits: the \
             event whose share of the clients' time differs most, of those that the slower side has more of."
        );
        terminal::result(styled(FAINT, note));
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "clients": row.shown().clients,
                "record": row.place.display().to_string(),
                "comparison": show::json(&row.opened, &row.opened.judge()),
            })
        });
        json!({ "answer": self.answer(), "clients": rows.collect::<Vec<_>>() })
    }

    /// The exit code: that of the worst comparison.
    fn exit(&self, fail_on: Option<record::comparison::FailOn>) -> ProgramExit {
        let exits: Vec<ProgramExit> = self
            .rows
            .iter()
            .map(|row| match row.shown().stop {
                ComparisonStop::Interrupted => ProgramExit::Interrupted,
                ComparisonStop::Died => ProgramExit::Incomplete,
                _ => exit::of_comparison(&row.opened.judge().claims, fail_on),
            })
            .collect();
        let worst_first = [
            ProgramExit::Interrupted,
            ProgramExit::Incomplete,
            ProgramExit::DoesNotHold,
            ProgramExit::CannotTell,
        ];
        worst_first.into_iter().find(|exit| exits.contains(exit)).unwrap_or(ProgramExit::Done)
    }
}
