//! `[nemesis]`: the faults of which `pgrig search` makes schedules, and the promises that they may break.

use std::ops::Range;

use nemesis::{DrawableFault, FaultSchedule, FaultSpace, FaultVictim};

use crate::action::{Action, ActionTarget};
use crate::check::Check;
use crate::claim::{Claim, ClaimKind, ClaimSubject};
use crate::duration;
use crate::expression::TrialCondition;
use crate::fields::{self, Fields};
use crate::folder::StudyFolder;
use crate::point::TrialPoint;
use crate::problem::Problems;
use crate::topology::Topology;
use crate::value::{Is, KeyValue, Table, Value};
use crate::whom::SqlTarget;

mod shipped;

/// What a study says of the search for the schedule of faults that breaks a promise; what it does not say is the
/// shipped default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NemesisSettings {
    /// A pattern that means the point whose load runs; none where the command or the study leave only one.
    pub trial: Option<String>,
    /// Conditions on a trial that a schedule must not break; none for those that the checks of the scenario imply.
    pub promises: Vec<String>,
    /// The faults; empty for all that the topology can suffer.
    faults: Vec<FaultWord>,
    /// The victims that are meant; empty for all.
    victims: Vec<String>,
    /// Fewest and most faults of a schedule.
    steps: Option<(usize, usize)>,
    /// Shortest and longest time that a fault lasts, in milliseconds.
    length_ms: Option<(u64, u64)>,
    /// Shortest and longest time between two faults, in milliseconds.
    gap_ms: Option<(u64, u64)>,
    /// Share of the faults that begin while the one before lasts.
    overlap: Option<f64>,
    /// Time that is left for healing, before the window closes, in milliseconds.
    settle_ms: Option<u64>,
}

/// A fault as a study names it.
#[derive(Clone, Debug, PartialEq)]
enum FaultWord {
    /// One of pgrig's.
    Shipped(String),
    /// The study's own.
    Own(FaultForm),
}

/// A fault as actions: how it begins, and how it ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FaultForm {
    pub(crate) name: String,
    /// The fields of the action that begins it; the text `{victim}` stands for the victim.
    begin: Vec<(String, Value)>,
    /// The fields of the action that ends it; none where it is over at once.
    end: Option<Vec<(String, Value)>>,
    /// Empty for those that all servers have.
    victims: Vec<String>,
    length_ms: Option<(u64, u64)>,
}

/// The faults of one point, and how a schedule of them is written.
#[derive(Clone, Debug, PartialEq)]
pub struct NemesisPlan {
    /// What may be drawn.
    pub space: FaultSpace,
    /// Conditions on a trial that a schedule must not break, besides the invariants of the study.
    pub promises: Vec<String>,
    forms: Vec<FaultForm>,
}

impl NemesisSettings {
    /// Reads `[nemesis]`; the topologies are those of `points` that its `trial` means. A profile may have no such point.
    pub(crate) fn parse(
        value: &Value,
        points: &[TrialPoint],
        folder: &StudyFolder,
        problems: &Problems,
    ) -> Option<NemesisSettings> {
        let fields = Fields::of("a nemesis", value, problems)?;
        let trial = fields.text("trial").map(str::to_owned);
        let is_meant = |point: &&TrialPoint| trial.as_deref().is_none_or(|it| point.name.fits(it));
        let meant: Vec<&TrialPoint> = points.iter().filter(is_meant).collect();
        let read = |key: &'static str| fields.value(key).and_then(|it| range(key, it, problems));
        let nemesis = NemesisSettings {
            promises: promises(&fields, &meant),
            faults: faults(&fields, &meant, folder),
            victims: victims(&fields, "victims", &meant),
            steps: fields.value("steps").and_then(|value| steps(value, problems)),
            length_ms: read("length"),
            gap_ms: read("gap"),
            overlap: share(&fields),
            settle_ms: fields.duration_ms("settle"),
            trial,
        };
        fields.finish();
        Some(nemesis)
    }

    /// The faults that a point can suffer, and its promises.
    ///
    /// # Errors
    /// Nothing can be drawn: no fault has a victim, or the window is too short.
    pub fn plan(&self, point: &TrialPoint) -> Result<NemesisPlan, String> {
        let topology = &point.topology;
        let all = shipped::faults(topology);
        let words = self.faults.iter().flat_map(|word| match word {
            FaultWord::Own(form) => vec![form.clone()],
            FaultWord::Shipped(word) => all
                .iter()
                .filter(|(known, _)| known == word)
                .map(|(_, form)| form.clone())
                .collect(),
        });
        let mut forms: Vec<FaultForm> = match self.faults.is_empty() {
            true => all
                .iter()
                .filter(|(word, _)| *word != shipped::PROMOTE)
                .map(|(_, form)| form.clone())
                .collect(),
            false => words.collect(),
        };
        for form in &mut forms {
            if form.victims.is_empty() {
                form.victims = shipped::servers(topology);
            }
            form.victims.retain(|one| self.victims.is_empty() || self.victims.contains(one));
        }
        forms.retain(|form| !form.victims.is_empty());
        if forms.is_empty() {
            return Err("no fault of the nemesis has a victim in this topology".to_owned());
        }
        let length_ms = self.length_ms.unwrap_or(LENGTH_MS);
        let fault = |form: &FaultForm| DrawableFault {
            name: form.name.clone(),
            victims: form.victims.iter().map(|name| victim(name)).collect(),
            length_ms: form.end.is_some().then(|| form.length_ms.unwrap_or(length_ms)),
        };
        let settle_ms = self.settle_ms.unwrap_or(point.window_ms / SETTLE_SHARE);
        let space = FaultSpace {
            faults: forms.iter().map(fault).collect(),
            steps: self.steps.unwrap_or(STEPS),
            gap_ms: self.gap_ms.unwrap_or(GAP_MS),
            overlap: self.overlap.unwrap_or(OVERLAP),
            first_ms: FIRST_MS,
            last_ms: point.window_ms.saturating_sub(settle_ms.max(1)),
        };
        let shortest = space.faults.iter().filter_map(|it| it.length_ms).map(|it| it.0).max();
        let needed = FIRST_MS + shortest.into_iter().sum::<u64>();
        if space.last_ms < needed {
            return Err(format!(
                "the window of {} closes after {} s, of which {} s are left for healing: no fault fits in",
                point.name,
                point.window_ms as f64 / 1e3,
                settle_ms as f64 / 1e3
            ));
        }
        let promises = match self.promises.is_empty() {
            true => implied(&point.checks),
            false => self.promises.clone(),
        };
        Ok(NemesisPlan { space, promises, forms })
    }
}

impl NemesisPlan {
    /// The actions of a schedule as a timeline writes them, in the order of their moments.
    pub fn timeline(&self, schedule: &FaultSchedule) -> Vec<String> {
        let actions =
            schedule.in_order().into_iter().map(|(at_ms, index, is_end)| {
                let step = &schedule.steps[index];
                let form = &self.forms[step.fault];
                let victim = &self.space.faults[step.fault].victims[step.victim];
                // A role may be another server's by then.
                let called = (victim.is_role && step.for_ms.is_some())
                    .then(|| format!("victim{}", index + 1));
                let fields =
                    if is_end { form.end.as_ref().unwrap_or(&form.begin) } else { &form.begin };
                let name = called.as_deref().filter(|_| is_end).unwrap_or(&victim.name);
                let mut text = vec![format!("at = \"{}\"", moment(at_ms))];
                text.extend(fields.iter().map(|(key, value)| {
                    format!("{key} = {}", toml_text(&with_victim(value, name)))
                }));
                text.extend(called.filter(|_| !is_end).map(|called| format!("as = \"{called}\"")));
                text.push("may_skip = true".to_owned());
                format!("{{ {} }}", text.join(", "))
            });
        actions.collect()
    }

    /// The same as the lines of a study.
    pub fn text(&self, schedule: &FaultSchedule) -> String {
        let lines = self.timeline(schedule).into_iter().map(|action| format!("  {action},\n"));
        format!("timeline = [\n{}]\n", lines.collect::<String>())
    }
}

/// The claims of a study that are invariants of every trial of a point.
pub fn invariants_of(claims: &[Claim], point: usize) -> impl Iterator<Item = &Claim> {
    let is_of = move |claim: &&Claim| match &claim.about {
        ClaimSubject::Every { points, .. } => {
            claim.kind == ClaimKind::Invariant && points.contains(&point)
        }
        ClaimSubject::Value { .. } => false,
    };
    claims.iter().filter(is_of)
}

/// The promises that are implied by what a scenario looks at.
fn implied(checks: &[Check]) -> Vec<String> {
    let of = |check: &Check| match check {
        Check::Ledger { .. } => {
            vec!["ledger_lost == 0", "ledger_split == 0", "ledger_anomalies == ledger_lost"]
        }
        Check::History { .. } => vec!["history_forbidden == 0"],
        Check::Amcheck { .. } | Check::AmcheckEverywhere => vec!["amcheck_corruptions == 0"],
        _ => Vec::new(),
    };
    checks.iter().flat_map(of).map(str::to_owned).collect()
}

fn victim(name: &str) -> FaultVictim {
    let is_role = [SqlTarget::PRIMARY_NOW, ActionTarget::STANDBY_NOW].contains(&name);
    FaultVictim { name: name.to_owned(), is_role }
}

fn promises(fields: &Fields<'_>, meant: &[&TrialPoint]) -> Vec<String> {
    let mut read = Vec::new();
    for (text, span) in fields.texts("promises") {
        match TrialCondition::parse(&text) {
            Err(fault) => match fault.hint {
                Some(hint) => fields.problems.hinted(&span, fault.message, hint),
                None => fields.problems.add(&span, fault.message),
            },
            Ok(condition) => {
                let lacks = condition.metrics().iter().find(|metric| {
                    !meant.is_empty() && !meant.iter().any(|point| point.can_have(metric))
                });
                if let Some(metric) = lacks {
                    let message = format!("no trial of the search has {}", metric.name);
                    let hint =
                        "give its scenario the check that counts it, as checks = [\"ledger\"]";
                    fields.problems.hinted(&span, message, hint);
                }
                read.push(text);
            }
        }
    }
    read
}

fn faults(fields: &Fields<'_>, meant: &[&TrialPoint], folder: &StudyFolder) -> Vec<FaultWord> {
    let problems = fields.problems;
    let values = fields.list("faults").iter();
    let read = values.filter_map(|value| match &value.is {
        Is::Text(word) => {
            let known = || shipped::WORDS.iter().map(|(word, _)| *word);
            if !known().any(|it| it == word) {
                let list = known().collect::<Vec<_>>().join(", ");
                let hint =
                    format!("there is {list}; or write one: {{ name = …, begin = {{ … }} }}");
                problems.hinted(&value.span, format!("unknown fault \"{word}\""), hint);
                return None;
            }
            Some(FaultWord::Shipped(word.clone()))
        }
        _ => own_fault(value, meant, folder, problems).map(FaultWord::Own),
    });
    read.collect()
}

fn own_fault(
    value: &Value,
    meant: &[&TrialPoint],
    folder: &StudyFolder,
    problems: &Problems,
) -> Option<FaultForm> {
    let fields = Fields::of("a fault", value, problems)?;
    fields.required("name");
    fields.required("begin");
    let name = fields.text("name")?.to_owned();
    let form = |key: &'static str| match fields.value(key) {
        Some(Value { is: Is::Table(table), .. }) => {
            let entries = table.entries.iter();
            Some(entries.map(|one| (one.key.clone(), one.value.clone())).collect::<Vec<_>>())
        }
        Some(other) => {
            problems.add(&other.span, format!("{key} must be an action, not {}", other.kind()));
            None
        }
        None => None,
    };
    let (begin, end) = (form("begin"), form("end"));
    let length_ms = fields.value("length").and_then(|it| range("length", it, problems));
    let victims = victims(&fields, "victims", meant);
    fields.finish();
    let form = FaultForm { name, begin: begin?, end, victims, length_ms };
    if let Some(point) = meant.first() {
        check_form(&form, &value.span, &point.topology, folder, problems);
    }
    Some(form)
}

/// Reads both actions of a fault with each of its victims: what is wrong with one is said here, where it is written.
fn check_form(
    form: &FaultForm,
    span: &Range<usize>,
    topology: &Topology,
    folder: &StudyFolder,
    problems: &Problems,
) {
    let victims = match form.victims.is_empty() {
        true => shipped::servers(topology),
        false => form.victims.clone(),
    };
    for victim in victims {
        for entries in [Some(&form.begin), form.end.as_ref()].into_iter().flatten() {
            let entries = entries.iter().map(|(key, value)| KeyValue {
                key: key.clone(),
                key_span: span.clone(),
                value: with_victim(value, &victim),
            });
            let table = Table { entries: entries.collect() };
            let fields = Fields::new("an action", &table, span.clone(), problems);
            // What is no action is said once.
            if Action::parse(&fields, topology, folder, &[]).is_some() {
                fields.finish();
            }
        }
    }
}

/// Names of nodes and links of the topologies that are meant, or roles.
fn victims(fields: &Fields<'_>, key: &'static str, meant: &[&TrialPoint]) -> Vec<String> {
    let topologies = || meant.iter().map(|point| &point.topology);
    let roles = [SqlTarget::PRIMARY_NOW, ActionTarget::STANDBY_NOW];
    let named = topologies().flat_map(|it| {
        let links = it.links.iter().map(|link| link.name.as_str());
        it.nodes.iter().map(|node| node.name.as_str()).chain(links)
    });
    let known: Vec<&str> = roles.into_iter().chain(named).collect();
    let mut read = Vec::new();
    for (name, span) in fields.texts(key) {
        let several: Vec<&str> = topologies().flat_map(|it| it.called(&name)).collect();
        if known.contains(&name.as_str()) {
            read.push(name);
        } else if !several.is_empty() {
            read.extend(several.into_iter().map(str::to_owned));
        } else if !meant.is_empty() {
            fields.problems.unknown(&span, "victim", &name, known.iter().copied());
        }
    }
    read.dedup();
    read
}

fn share(fields: &Fields<'_>) -> Option<f64> {
    let share = fields.number("overlap")?;
    if !(0.0..=1.0).contains(&share) {
        let span = fields.value("overlap").map_or(fields.span(), |value| &value.span);
        fields.problems.add(span, "overlap must be a share from 0 to 1");
    }
    Some(share)
}

/// `"500ms .. 8s"`, or one duration.
fn range(key: &str, value: &Value, problems: &Problems) -> Option<(u64, u64)> {
    let text = fields::text(key, value, problems)?;
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let read = duration::parse_ms(low).and_then(|low| Ok((low, duration::parse_ms(high)?)));
    match read {
        Ok((low, high)) if low <= high => Some((low, high)),
        Ok(_) => {
            problems.add(&value.span, format!("{key}: the shortest is longer than the longest"));
            None
        }
        Err(why) => {
            let hint = format!("write {key} = \"500ms .. 8s\"");
            problems.hinted(&value.span, format!("{key}: {why}"), hint);
            None
        }
    }
}

/// `"1 .. 3"`, or one number.
fn steps(value: &Value, problems: &Problems) -> Option<(usize, usize)> {
    let text = value.scalar_text();
    let numbers = text.as_deref().and_then(|text| {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        Some((low.trim().parse::<usize>().ok()?, high.trim().parse::<usize>().ok()?))
    });
    let is_sound = |(low, high): &(usize, usize)| *low >= 1 && low <= high && *high <= STEPS_MAX;
    let found = numbers.filter(is_sound);
    if found.is_none() {
        let message = format!("steps must be faults of a schedule, from 1 to {STEPS_MAX}");
        problems.hinted(&value.span, message, "write steps = \"1 .. 3\"");
    }
    found
}

fn with_victim(value: &Value, victim: &str) -> Value {
    let is = match &value.is {
        Is::Text(text) => Is::Text(text.replace("{victim}", victim)),
        Is::List(list) => Is::List(list.iter().map(|one| with_victim(one, victim)).collect()),
        Is::Table(table) => {
            let entries = table.entries.iter().map(|entry| KeyValue {
                value: with_victim(&entry.value, victim),
                ..entry.clone()
            });
            Is::Table(Table { entries: entries.collect() })
        }
        scalar => scalar.clone(),
    };
    Value { span: value.span.clone(), is }
}

/// A value as TOML writes it inside a line.
fn toml_text(value: &Value) -> String {
    match &value.is {
        Is::Text(text) => toml::Value::String(text.clone()).to_string(),
        Is::Integer(number) => number.to_string(),
        Is::Float(number) => toml::Value::Float(*number).to_string(),
        Is::Bool(is) => is.to_string(),
        Is::List(list) => {
            format!("[{}]", list.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        Is::Table(table) => {
            let one = |entry: &KeyValue| format!("{} = {}", entry.key, toml_text(&entry.value));
            format!("{{ {} }}", table.entries.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

fn moment(ms: u64) -> String {
    match ms % 1_000 {
        0 => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

/// Faults of a schedule.
const STEPS: (usize, usize) = (1, 3);
const STEPS_MAX: usize = 20;
/// How long a fault lasts.
const LENGTH_MS: (u64, u64) = (500, 8_000);
/// Between two faults.
const GAP_MS: (u64, u64) = (0, 3_000);
/// Share of the faults that begin while the one before lasts.
const OVERLAP: f64 = 0.6;
/// Clients have begun by then.
const FIRST_MS: u64 = 1_000;
/// One part in so many of the window is left for healing.
const SETTLE_SHARE: u64 = 3;
