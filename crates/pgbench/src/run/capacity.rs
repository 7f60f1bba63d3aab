//! `--capacity`: throughput and latency over the number of clients, and over the CPUs of the server; and what more of
//! them would give.

use std::io;
use std::time::Duration;

use load::{LoadControl, StopUrgency};
use os::command::{CommandLimits, ProcessCommand};
use stats::scalability::{ScalingEstimate, ScalingPoint};
use terms::{duration, grouped};

use crate::complaint::{Complaint, system_error};
use crate::console::Console;
use crate::options::{CapacityOptions, CpusBy, FindOptions, Range, RunOptions, ServerCpus};
use crate::search::capacity::{
    CapacityForecast, CapacityResult, ClientSweep, NoForecast, ROUNDS, ScalingAnswer,
    client_counts, order,
};
use crate::search::curve::{Curve, Tried};
use crate::search::steps::End;

use super::figure::{self, rate};
use super::find::{LoadAxis, Run, observed, verdict};
use super::found::{
    INTERRUPTED, SearchResult, ShownWindow, ShownWindows, early_end, unless_interrupted,
};
use super::own_server::OwnServer;

/// A command of the user's may take so long to change the CPUs of the server.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// Bytes of what it prints that are shown.
const COMMAND_BYTES: u64 = 4_096;

/// The options of a sweep, and where the server is.
pub(super) struct CapacitySweep<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) asked: &'a CapacityOptions,
    pub(super) seed: u64,
    pub(super) is_server_here: bool,
    pub(super) control: &'a LoadControl,
    /// The server of `--own-server`.
    pub(super) own: Option<&'a mut OwnServer>,
}

/// The windows so far.
struct SweptWindows {
    curve: Curve,
    /// Those of each number of CPUs.
    by_setting: Vec<Vec<Tried>>,
    shown: ShownWindows,
    /// Why the sweep has ended early.
    ended: Option<String>,
}

impl CapacitySweep<'_> {
    /// Sweeps over all loads.
    ///
    /// # Errors
    /// If a window cannot be measured, or the CPUs of the server cannot be changed.
    pub(super) fn run(
        &mut self,
        console: &mut Console<'_>,
        run: Run<'_>,
    ) -> Result<SearchResult, Complaint> {
        let counts = client_counts(self.options.clients);
        let settings: Vec<Option<f64>> = match &self.asked.server_cpus {
            None => vec![None],
            Some(cpus) => cpus.counts.iter().copied().map(Some).collect(),
        };
        let find = FindOptions {
            goal: self.asked.goal.clone(),
            range: Range::Clients,
            seconds: 0,
            curve: None,
        };
        let axis = LoadAxis { find: &find, options: self.options };
        let count = counts.len() * settings.len() * ROUNDS as usize;
        let window_s = axis.window_s(true);
        console.narrate(format_args!(
            "pgrig: {} for {}: {} loads{}, {ROUNDS} times",
            terms::counted(count as u64, "window"),
            duration(count as f64 * window_s),
            counts.len(),
            match settings.len() {
                1 => String::new(),
                n => format!(" with each of {n} numbers of CPUs"),
            }
        ));
        let swept = self.sweep(&axis, &counts, &settings, console, run);
        if let Some(cpus) = &self.asked.server_cpus {
            // The first number is what the server had. An interruption does not keep it from getting that back.
            self.set_cpus(cpus, cpus.counts[0], &LoadControl::new())?;
        }
        let swept = swept?;
        let capacity = self.answer(&settings, &swept);
        result(swept, capacity, &axis, count)
    }

    fn sweep(
        &mut self,
        axis: &LoadAxis<'_>,
        counts: &[u32],
        settings: &[Option<f64>],
        console: &mut Console<'_>,
        run: Run<'_>,
    ) -> Result<SweptWindows, Complaint> {
        let goal = &self.asked.goal;
        let curve = Curve::begin(axis.name(), goal);
        let by_setting = vec![Vec::new(); settings.len()];
        let mut swept =
            SweptWindows { curve, by_setting, shown: ShownWindows::default(), ended: None };
        for round in 0..ROUNDS {
            for setting in order(settings.len(), round, self.seed) {
                if let (Some(cpus), Some(count)) = (&self.asked.server_cpus, settings[setting]) {
                    self.set_cpus(cpus, count, self.control)?;
                }
                for at in order(counts.len(), round, self.seed.rotate_left(setting as u32 + 1)) {
                    let load = f64::from(counts[at]);
                    let options = axis.options(Some(load), true);
                    let (measured, before) = (run(&options, console), swept.curve.windows.len());
                    let Some(measured) = unless_interrupted(measured, self.control, before)? else {
                        swept.ended = Some(INTERRUPTED.to_owned());
                        return Ok(swept);
                    };
                    let window = axis.look(goal, load, true, &measured.outcome);
                    swept.ended = early_end(self.control, &measured);
                    swept.shown.offer(&window, options, measured);
                    // A window that was cut short says nothing of its load.
                    if swept.ended.is_some() {
                        return Ok(swept);
                    }
                    let on = settings[setting].map(|cpus| format!(" on {}", cpus_words(cpus)));
                    console.narrate(format_args!(
                        "pgrig: {}{}: {} a second, {}: {}",
                        axis.load(load),
                        on.as_deref().unwrap_or(""),
                        figure::rate(window.achieved),
                        goal.values(&observed(&window)),
                        verdict(&window)
                    ));
                    swept.by_setting[setting].push(window.clone());
                    swept.curve.windows.push(window);
                }
            }
        }
        Ok(swept)
    }

    /// Gives the server so many CPUs.
    fn set_cpus(
        &mut self,
        cpus: &ServerCpus,
        count: f64,
        control: &LoadControl,
    ) -> Result<(), Complaint> {
        match &cpus.by {
            CpusBy::Command(command) => command_cpus(command, count, control),
            CpusBy::OwnServer => self.own.as_mut().map_or(Ok(()), |own| own.limit_cpus(count)),
        }
    }

    fn answer(&self, settings: &[Option<f64>], swept: &SweptWindows) -> CapacityResult {
        let sweeps = settings.iter().zip(&swept.by_setting);
        let sweeps: Vec<ClientSweep> = sweeps
            .map(|(cpus, windows)| ClientSweep::of(*cpus, windows, swept.curve.quantile))
            .collect();
        let cpus = (sweeps.len() > 1).then(|| {
            let point = |sweep: &ClientSweep| {
                // Nothing is done within the goal where no load keeps it.
                let rate = sweep.best().map_or(0.0, |best| best.rate);
                ScalingPoint { load: sweep.cpus.expect("a sweep of several has CPUs"), rate }
            };
            ScalingAnswer::of(&sweeps.iter().map(point).collect::<Vec<_>>())
        });
        // A load from the same CPUs takes a part of what the server gets.
        let most = sweeps.iter().filter_map(|sweep| sweep.cpus).fold(0.0, f64::max);
        let here = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        let shares_cpus = self.is_server_here && most > here - LOAD_CPUS;
        CapacityResult { sweeps, cpus, shares_cpus }
    }
}

fn result(
    swept: SweptWindows,
    capacity: CapacityResult,
    axis: &LoadAxis<'_>,
    count: usize,
) -> Result<SearchResult, Complaint> {
    let SweptWindows { mut curve, shown, ended, .. } = swept;
    let nothing = || Complaint::error("no window was measured");
    let best = capacity.largest().best();
    let shown = shown.take(best.map(|best| best.load)).ok_or_else(nothing)?;
    let ShownWindow { load, options, measured, .. } = shown;
    curve.shown = load;
    curve.end = ended.is_none().then_some(End::Swept { best: best.map(|best| best.load) });
    let (words, is_answer) = match (ended, best) {
        (Some(ended), _) => (
            format!("the sweep was {ended} after {} of {count} windows", curve.windows.len()),
            false,
        ),
        (None, Some(best)) => {
            let (rate, load) = (figure::rate(best.rate), axis.load(best.load));
            (format!("at most {rate} a second keep {}, with {load}", curve.goal), true)
        }
        (None, None) => (format!("\"{}\" holds with no number of clients", curve.goal), false),
    };
    let details = if is_answer { details(&capacity, curve.quantile) } else { Vec::new() };
    let (capacity, pools) = (Some(capacity), None);
    Ok(SearchResult { options, measured, curve, words, is_answer, details, capacity, pools })
}

/// Windows of one load that differ by more are worth a word.
const VARIATION_MAX: f64 = 1.5;
/// CPUs that a load on the server's machine keeps busy.
const LOAD_CPUS: f64 = 1.0;

/// Has the user's command give the server so many CPUs.
fn command_cpus(command: &str, count: f64, control: &LoadControl) -> Result<(), Complaint> {
    let text = command.replace("{cpus}", &format!("{count}"));
    let text = text.replace("{percent}", &format!("{:.0}", count * 100.0));
    let limits = CommandLimits {
        bytes_max: COMMAND_BYTES,
        timeout: Some(COMMAND_MAX),
        is_interrupted: &|| control.urgency() != StopUrgency::None,
    };
    let failed = |why: String| {
        Complaint::error(format_args!(
            "could not give the server {} by --server-cpus-command \"{text}\": {why}",
            cpus_words(count)
        ))
    };
    let command = ProcessCommand::new("/bin/sh").args(["-c", &text]).inherit_env();
    let output = command.run(None, &limits).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => failed(format!("it took longer than {COMMAND_MAX:?}")),
        _ => failed(system_error(&error)),
    })?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(failed(format!("it ended with {}: {said}", output.status)))
        }
    }
}

fn cpus_words(count: f64) -> String {
    if count == 1.0 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}

/// Lines for people: a table of the loads, the law, and what more would give.
fn details(capacity: &CapacityResult, quantile: f64) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    let name = |text: &str| text.to_owned();
    for sweep in &capacity.sweeps {
        let on = sweep.cpus.map_or(String::new(), |cpus| format!(", {}", cpus_words(cpus)));
        for one in &sweep.loads {
            let (low, high) = one.range;
            // 0.999 times 100 is not quite 99.9.
            let percent = (quantile * 1e8).round() / 1e6;
            let ms = one.quantile_ms.map_or(String::new(), |ms| format!(", p{percent} {ms:.2} ms"));
            let mark = if one.holds { "" } else { ": the goal does not hold" };
            let rates = format!("{} [{}, {}] a second", rate(one.rate), rate(low), rate(high));
            let clients = terms::counted(one.load as u64, "client");
            lines.push((format!("{clients}{on}"), format!("{rates}{ms}{mark}")));
        }
    }
    if let Some(times) = capacity.variation().filter(|times| *times > VARIATION_MAX) {
        let text = format!(
            "windows of one load differ up to {times:.1} ×: something else uses the machine, or -T is \
             too short"
        );
        lines.push((name("unsteady"), text));
    }
    if let Ok(law) = &capacity.largest().law {
        lines.push((name("scaling"), law_words(law)));
    }
    lines.push((name("more clients"), forecast_words(&capacity.largest().law, "clients")));
    match &capacity.cpus {
        None => {}
        Some(_) if capacity.shares_cpus => lines.push((
            name("more CPUs"),
            "cannot tell: the load had the same CPUs as the server; start it on another machine \
             (--hosts)"
                .to_owned(),
        )),
        Some(law) => lines.push((name("more CPUs"), forecast_words(law, "CPUs"))),
    }
    lines
}

fn law_words(law: &ScalingAnswer) -> String {
    let peak = law.peak_load;
    let peak = match peak.high.is_finite() {
        true => {
            format!("the peak is at {:.0} [{:.0}, {:.0}] clients", peak.point, peak.low, peak.high)
        }
        false => format!("no peak below {:.0} clients", peak.low),
    };
    format!(
        "{} of the work waits for others, and each pair costs {} of it; {peak}",
        percent(&law.contention),
        percent(&law.coherence)
    )
}

fn percent(share: &ScalingEstimate) -> String {
    let figure = |share: f64| terms::figure(share * 100.0);
    format!("{} % [{}, {}]", figure(share.point), figure(share.low), figure(share.high))
}

fn forecast_words(law: &Result<ScalingAnswer, NoForecast>, unit: &str) -> String {
    match law.as_ref().map_err(|why| *why).and_then(ScalingAnswer::forecast) {
        Ok(beyond) => {
            let one = |forecast: &CapacityForecast| {
                format!(
                    "{} {unit}: {}",
                    grouped(forecast.load.round() as u64),
                    range(&forecast.rate)
                )
            };
            format!("{} a second", beyond.map(|forecast| one(&forecast)).join(", "))
        }
        Err(NoForecast::NoCurve(why)) => format!("cannot tell: {why}"),
        Err(NoForecast::NotPredicted(held)) => format!(
            "cannot tell: from fewer {unit} the law expects {} a second with {}, and {} were seen",
            range(&held.predicted),
            held.observed.load,
            rate(held.observed.rate)
        ),
        Err(NoForecast::TooWide(estimate)) => {
            format!("cannot tell: {} a second is too wide to be an answer", range(&estimate))
        }
    }
}

fn range(estimate: &ScalingEstimate) -> String {
    format!("{} [{}, {}]", rate(estimate.point), rate(estimate.low), rate(estimate.high))
}
