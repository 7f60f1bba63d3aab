//! Output of a run while it goes on: one live line on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::{AttemptEnding, PairingAttempt, Trial};
use spec::{NamedItem, PointName, Study, TrialPoint};
use study::{LoadStage, StudyEvent};
use terms::{duration, size};
use verdict::ClaimMeasurement;

use crate::summary;
use console::terminal::{self, BAD, FAINT, UNSURE, styled};

/// Shows the events of one run.
pub(crate) struct Progress<'a> {
    study: &'a Study,
    live: Option<ProgressBar>,
    /// The trial under way, in words.
    trial: String,
    rounds: u32,
    /// Transactions a second that it asks for; 0 in a closed loop.
    rate: f64,
}

impl<'a> Progress<'a> {
    pub(crate) fn of(study: &'a Study) -> Progress<'a> {
        let live = terminal::is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The template is right; a wrong one would only be less pretty.
            let style = ProgressStyle::with_template("{wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        // A study without points has no round to tell of.
        let rounds = study.points.iter().map(|point| point.rounds).max().unwrap_or(0);
        Progress { study, live, trial: String::new(), rounds, rate: 0.0 }
    }

    /// Takes the live line away.
    pub(crate) fn end(&self) {
        if let Some(live) = &self.live {
            live.finish_and_clear();
        }
    }

    pub(crate) fn show(&mut self, event: &StudyEvent<'_>) {
        match event {
            StudyEvent::Begins { preflight, trials, directory } => {
                let estimate = &preflight.estimate;
                self.say(&format!(
                    "▸ {} study, profile {}: {} ≈ {}, {} disk, {} memory",
                    self.study.name,
                    self.study.profile,
                    plural(*trials, "trial"),
                    duration(estimate.seconds()),
                    size(estimate.disk_bytes),
                    size(estimate.memory_bytes)
                ));
                let directory = directory.display();
                self.say(&styled(FAINT, format_args!("  record          {directory}")));
                self.say(&styled(FAINT, format_args!("  seed            {}", self.study.seed)));
                self.say("");
            }
            StudyEvent::Preparing { what, share } => {
                let share = share.map(|share| format!("{}  {:.0} %", bar(share), share * 100.0));
                // Not every preparation knows how much of it is done.
                let share = share.unwrap_or_default();
                self.live(&format!("  preparing       {what}  {share}"));
            }
            StudyEvent::Prepared { what, seconds } => {
                self.say(&format!("  preparing       {what}  {}", duration(*seconds)));
            }
            StudyEvent::TrialBegins { planned, point, left_s, .. } => {
                self.rate = rate(&self.study.points[planned.point]);
                self.trial = format!(
                    "  round {:<9} {}",
                    format!("{}/{}", planned.round, self.rounds),
                    short(self.study, point)
                );
                self.live(&self.line("", "starting", *left_s));
            }
            StudyEvent::Load { stage, left_s } => self.stage(stage, *left_s),
            StudyEvent::TrialEnded { trial, .. } => self.trial_ended(trial),
            StudyEvent::RoundEnded { round, of, trials } => self.round_ended(*round, *of, trials),
            StudyEvent::PairsBegin { pairing, of } => {
                let [above, below] =
                    [pairing.above, pairing.below].map(|point| &self.study.points[point].name);
                let [one, other] = [above, below].map(|name| short(self.study, name));
                // What both have in common is said once.
                let both = one.trim_start_matches(&format!("{}/", above.variant));
                let is_one = [above.variant == below.variant, above.scenario == below.scenario];
                let words = match (is_one, above.axes == below.axes) {
                    ([true, false], true) => {
                        format!("{} ÷ {}, {}", above.scenario, below.scenario, above.variant)
                    }
                    ([false, true], true) => {
                        format!("{} ÷ {}, {both}", above.variant, below.variant)
                    }
                    _ => format!("{one} ÷ {other}"),
                };
                let number = format!("{}/{of}", pairing.number);
                self.trial = format!("  pairs {number:<9} {words}");
                self.live(&self.trial);
            }
            StudyEvent::Pairs { progress, left_s } => {
                let throughput = progress.figures.iter().find_map(|figure| {
                    figure
                        .ratio
                        .filter(|_| figure.metric == record::comparison::ComparedMetric::Throughput)
                });
                let words = throughput.map(|ratio| {
                    format!("{:.3} [{:.3}, {:.3}]  ", ratio.point, ratio.low, ratio.high)
                });
                // Before the first pairs there is no ratio.
                let words =
                    words.unwrap_or_default() + &terms::counted(progress.pairs as u64, "pair");
                self.live(&self.line("", &words, *left_s));
            }
            StudyEvent::PairsEnded { paired, .. } => self.pairs_ended(paired),
            StudyEvent::Note(note) => self.say(&styled(FAINT, format_args!("  {note}"))),
        }
    }

    fn stage(&self, stage: &LoadStage, left_s: f64) {
        let (bar, words) = match stage {
            LoadStage::Connecting { done, of } => {
                (String::new(), format!("connecting {done} of {of}"))
            }
            LoadStage::WarmingUp { seconds } => {
                (String::new(), format!("warming up {seconds:.0} s"))
            }
            LoadStage::Measuring { seconds, of_s, tps, p99_ms, backlog } => {
                let (bar, tps) = (bar(seconds / of_s), terms::figure(*tps));
                let p99 = p99_ms.map(|ms| format!("  p99 {} ms", terms::figure(ms)));
                // Before the first transaction has ended there is no latency.
                let p99 = p99.unwrap_or_default();
                // A rate that is reached leaves a few transactions waiting, too.
                let behind = match *backlog as f64 {
                    backlog if backlog > self.rate * 0.1 && self.rate > 0.0 => {
                        format!(", {} behind the rate", terms::figure(backlog))
                    }
                    _ => String::new(),
                };
                (bar, format!("{seconds:.0} s/{of_s:.0} s  {tps} tps{behind}{p99}"))
            }
        };
        self.live(&self.line(&bar, &words, left_s));
    }

    /// The live line of the trial under way.
    fn line(&self, bar: &str, words: &str, left_s: f64) -> String {
        line_of(&self.trial, bar, words, &to_go(left_s), terminal::columns())
    }

    fn trial_ended(&self, trial: &Trial) {
        let name = format!("{}/{}", trial.variant, trial.scenario);
        let tps = verdict::value_of(trial, &spec::metrics::TPS, "");
        match &trial.ending {
            // The live line is replaced by the trial's totals.
            AttemptEnding::Done => {
                let mut words = throughput_words(trial, tps);
                for one in verdict::missed_rates(self.study, std::slice::from_ref(trial)) {
                    let [reached, asked, backlog] =
                        [one.reached, one.asked, one.backlog as f64].map(terms::figure);
                    words.push_str(&format!(
                        "; {} has {reached} of the {asked} asked, {backlog} never started",
                        one.workload
                    ));
                }
                self.say(&format!("{}  {words}", self.trial));
            }
            AttemptEnding::Void(why) => {
                self.say(&styled(UNSURE, format_args!("  void            {name}: {}", why.text)));
            }
            AttemptEnding::Skipped(why) => {
                self.say(&styled(UNSURE, format_args!("  left out        {name}: {}", why.text)));
            }
            AttemptEnding::Interrupted(why) => {
                self.say(&styled(UNSURE, format_args!("  interrupted     {name}: {}", why.text)));
            }
            AttemptEnding::Failed(why) => {
                self.say(&styled(BAD, format_args!("  failed          {name}: {}", why.text)));
            }
        }
    }

    fn pairs_ended(&self, paired: &PairingAttempt) {
        let throughput = paired.shown.figure(record::comparison::ComparedMetric::Throughput);
        let ratio = throughput.and_then(|figure| figure.b_over_a.as_ref());
        let ratio = ratio.map_or_else(|| "too few for an interval".to_owned(), |r| r.words());
        match &paired.ending {
            AttemptEnding::Done => {
                let pairs = terms::counted(paired.shown.pairs as u64, "pair");
                let took = duration(paired.shown.seconds);
                self.say(&format!("{}  {ratio}  {pairs}, {took}", self.trial));
            }
            ending => {
                let words = format_args!("{}  not measured: {}", self.trial, ending.why());
                self.say(&styled(UNSURE, words));
            }
        }
    }

    /// Tells the state of the first claim that these trials are about, after each round.
    fn round_ended(&self, round: u32, of: u32, trials: &[Trial]) {
        let judged = self.study.claims.iter();
        let mut judged = judged.map(|claim| verdict::judge_claim(self.study, claim, trials, &[]));
        let Some(judged) = judged.find(|it| !matches!(it.measured, ClaimMeasurement::Nothing))
        else {
            // The trials so far are about no claim.
            return;
        };
        if round == of {
            return;
        }
        let here = summary::here(&judged);
        let round = format!("{round}/{of}");
        // An interval that is read after every round misses more often than it promises.
        self.say(&format!("  round {round:<9} {}  {here}  (so far; no verdict)", judged.says));
    }

    /// A line that stays.
    fn say(&self, text: &str) {
        match &self.live {
            Some(live) => live.suspend(|| terminal::narrate(text)),
            None => terminal::narrate(text),
        }
    }

    /// A line that is replaced by the next one.
    fn live(&self, text: &str) {
        if let Some(live) = &self.live {
            live.set_message(terminal::clean(text));
            live.tick();
        }
    }
}

/// Throughput of a trial, and of each workload where there are several: the sum may be that of one which only
/// watches.
fn throughput_words(trial: &Trial, sum: Option<f64>) -> String {
    let Some(sum) = sum else { return String::new() };
    let sum = format!("{} tps", terms::figure(sum));
    if trial.workloads.len() < 2 {
        return sum;
    }
    let each = trial.workloads.iter().filter_map(|workload| {
        let tps = verdict::value_of(trial, &spec::metrics::TPS, &workload.name)?;
        Some(format!("{} {}", workload.name, terms::figure(tps)))
    });
    format!("{sum} ({})", each.collect::<Vec<_>>().join(", "))
}

/// Transactions a second that a point asks for, all workloads together.
fn rate(point: &TrialPoint) -> f64 {
    point.workloads.iter().filter_map(|workload| workload.pace.rate()).sum()
}

/// A trial, how far it has come, and how long the run takes, in so many columns. What is measured
/// stands there in any case; first the bar gives way, then the time to go, then part of the name.
fn line_of(trial: &str, bar: &str, words: &str, to_go: &str, columns: usize) -> String {
    let joined = |parts: &[&str]| {
        let parts = parts.iter().copied().filter(|part| !part.is_empty());
        parts.collect::<Vec<&str>>().join("  ")
    };
    let fits = |line: &String| line.chars().count() < columns;
    let lines = [
        joined(&[trial, bar, words, to_go]),
        joined(&[trial, words, to_go]),
        joined(&[trial, words]),
    ];
    lines.into_iter().find(fits).unwrap_or_else(|| {
        let room = columns.saturating_sub(words.chars().count() + 4);
        let name: String = trial.chars().take(room).collect();
        let line = format!("{}…  {words}", name.trim_end());
        line.chars().take(columns - 1).collect()
    })
}

/// The parts of a point's name that differ within its study; the scenario in the study's words.
fn short(study: &Study, point: &PointName) -> String {
    let scenario = study.scenarios.iter().find(|scenario| scenario.name == point.scenario);
    let mut name = scenario.map_or(point.scenario.as_str(), NamedItem::label).to_owned();
    if study.points.iter().any(|other| other.name.variant != point.variant) {
        name = format!("{}/{name}", point.variant);
    }
    let axes: Vec<String> =
        point.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    format!("{name} {}", axes.join(",")).trim_end().to_owned()
}

/// `1 trial`, `18 trials`.
fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn to_go(left_s: f64) -> String {
    format!("{} to go", duration(left_s))
}

fn bar(share: f64) -> String {
    let done = (share.clamp(0.0, 1.0) * BAR_COLUMNS as f64) as usize;
    let tip = if done < BAR_COLUMNS { "╸" } else { "" };
    let rest = BAR_COLUMNS.saturating_sub(done + 1);
    format!("{}{tip}{}", "━".repeat(done), "─".repeat(rest))
}

const BAR_COLUMNS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_whatever_it_shows() {
        for share in [0.0, 0.01, 0.5, 0.99, 1.0, 2.0] {
            assert_eq!(bar(share).chars().count(), BAR_COLUMNS, "{share}");
        }
        assert_eq!(bar(0.45), "━━━━━━━━━╸──────────");
    }

    #[test]
    fn the_live_line_of_every_shipped_study_fits_and_keeps_its_figures() {
        let words = "120 s/120 s  1,234,567 tps  p99 12,346 ms";
        for folder in crate::studies::shipped() {
            let place = folder.name.clone();
            let found = crate::studies::NamedStudy { folder, place };
            let Ok(study) = crate::studies::parse(&found, spec::StudyProfile::Full) else {
                panic!("{}", found.place);
            };
            for point in &study.points {
                let trial = format!("  round {:<9} {}", "6/6", short(&study, &point.name));
                for columns in [60, 80, 100] {
                    let line = line_of(&trial, &bar(0.5), words, "1 h 23 min to go", columns);
                    assert!(line.chars().count() < columns, "{columns}: {line}");
                    assert!(line.contains(words), "{columns}: {line}");
                }
            }
        }
    }
}
