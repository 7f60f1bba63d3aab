//! The arithmetic of claims.
//!
//! A claim's value is an expression in which every metric of the catalogue is a function of a
//! point, `tps('variant/scenario', 'axis=value')`, and its answer is one number. An expression is
//! checked against the points of the study when it is read, so that a later computation meets
//! only points that exist. The grammar is minijinja's.
//!
//! Limits: which trials a reference stands for, and how several rounds become one number, is the
//! business of `verdict`.

mod foreign;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Rest, Value};
use minijinja::{Environment, Error, ErrorKind};

use crate::catalogue::{Metric, MetricScope, catalogue, metric};
use crate::phase::ScenarioPhase;
use crate::point::PointName;
use crate::problem::nearest;

/// A claim's value.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimExpression {
    source: String,
    references: Vec<MetricReference>,
}

/// A metric of a point, as a claim asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricReference {
    /// The metric.
    pub metric: &'static Metric,
    /// Index of the point in the study.
    pub point: usize,
    /// A workload, a node or a statement; empty for the trial as a whole. Of one phase, as
    /// [`ScenarioPhase::scope`] writes it.
    pub scope: String,
    /// The call as it was written, which is how it is found again.
    call: Call,
}

/// Metric, path and axes of a call as written.
type Call = (String, String, String);

/// True if `text` is this call and nothing else.
fn is_call(text: &str, (metric, path, axes): &Call) -> bool {
    let Some(arguments) = text.trim().strip_prefix(metric.as_str()) else { return false };
    let arguments = arguments.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(arguments) = arguments else { return false };
    // Between quotes stand the path, the comma, and the axes.
    let parts: Vec<&str> = arguments.split(['\'', '"']).collect();
    match parts.as_slice() {
        [_, only, _] => *only == path && axes.is_empty(),
        [_, first, _, second, _] => *first == path && second == axes,
        _ => false,
    }
}

/// The texts before and after the one division sign outside quotes.
fn quotient(source: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut signs = source.char_indices().filter(|(_, c)| {
        match (quote, *c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(*c),
            (None, '/') => return true,
            _ => {}
        }
        false
    });
    let (at, _) = signs.next()?;
    signs.next().is_none().then(|| (&source[..at], &source[at + 1..]))
}

/// The fault in an expression, and its position.
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) span: Option<Range<usize>>,
}

/// A point as expressions see it: its name, and what its parts are called.
pub(crate) struct Target {
    pub(crate) name: PointName,
    pub(crate) workloads: Vec<String>,
    pub(crate) nodes: Vec<String>,
    /// Names of the checks that run a query.
    pub(crate) queries: Vec<String>,
    pub(crate) phases: Vec<String>,
}

impl ClaimExpression {
    /// Reads an expression and finds the points that it speaks of.
    pub(crate) fn parse(source: &str, targets: &Arc<[Target]>) -> Result<ClaimExpression, Fault> {
        let found = Arc::new(Mutex::new(Vec::new()));
        if let Some(span) = logic(source) {
            let message =
                format!("a value is arithmetic, it knows no \"{}\"", &source[span.clone()]);
            return Err(Fault { message, hint: None, span: Some(span) });
        }
        let mut environment = arithmetic();
        for metric in catalogue() {
            let (found, targets) = (Arc::clone(&found), Arc::clone(targets));
            environment.add_function(metric.name, move |arguments: Rest<Value>| {
                let reference = resolve(metric, &arguments, &targets)?;
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if !found.contains(&reference) {
                    found.push(reference);
                }
                // Any number will do here; 1 divides.
                Ok::<f64, Error>(1.0)
            });
        }
        let expression = compile(&environment, source)?;
        let functions =
            |name: &String| metric(name).is_some() || FUNCTIONS.contains(&name.as_str());
        let names = expression.undeclared_variables(true).into_iter();
        if let Some(name) = names.filter(|name| !functions(name)).min() {
            return Err(unknown(&name, source));
        }
        let value = expression.eval(()).map_err(|e| fault(&e))?;
        let references = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if f64::try_from(value).is_err() {
            return Err(plain("the expression does not give a number"));
        }
        if references.is_empty() {
            let hint = "ask for a metric: tps('variant/scenario')".to_owned();
            let message = "the expression speaks of no trial".to_owned();
            return Err(Fault { message, hint: Some(hint), span: None });
        }
        Ok(ClaimExpression { source: source.to_owned(), references })
    }

    /// The metrics that it asks for, each once, in the order in which they are asked.
    pub fn references(&self) -> &[MetricReference] {
        &self.references
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Numerator and denominator, as indices of [`ClaimExpression::references`], where the value is one
    /// figure divided by another and nothing else: such a ratio has intervals of its own.
    pub fn ratio(&self) -> Option<(usize, usize)> {
        let (numerator, denominator) = quotient(&self.source)?;
        let index = |text: &str| self.references.iter().position(|one| is_call(text, &one.call));
        Some((index(numerator)?, index(denominator)?))
    }

    /// The value for each row of values, one for each reference in their order; NaN where it has
    /// none, as for a division by zero.
    pub fn evaluate<'r>(&self, rows: impl Iterator<Item = &'r [f64]>) -> Vec<f64> {
        let current: Arc<Mutex<Vec<f64>>> = Arc::default();
        let mut environment = arithmetic();
        let mut calls: BTreeMap<&str, Vec<(usize, &Call)>> = BTreeMap::new();
        for (index, reference) in self.references.iter().enumerate() {
            calls.entry(reference.metric.name).or_default().push((index, &reference.call));
        }
        for (name, calls) in calls {
            let calls: Vec<(usize, Call)> =
                calls.into_iter().map(|(index, call)| (index, call.clone())).collect();
            let current = Arc::clone(&current);
            environment.add_function(name.to_owned(), move |path: &str, axes: Option<&str>| {
                let axes = axes.unwrap_or_default(); // A metric may be named without axes.
                let index = calls.iter().find(|(_, call)| call.1 == path && call.2 == axes);
                let current = current.lock().unwrap_or_else(PoisonError::into_inner);
                index.and_then(|(index, _)| current.get(*index)).copied().unwrap_or(f64::NAN)
            });
        }
        let Ok(expression) = environment.compile_expression(&self.source) else {
            return Vec::new();
        };
        let values = rows.map(|row| {
            row.clone_into(&mut current.lock().unwrap_or_else(PoisonError::into_inner));
            expression.eval(()).ok().and_then(|v| f64::try_from(v).ok()).unwrap_or(f64::NAN)
        });
        values.collect()
    }
}

/// A statement about single trials: an expression over the names of metrics that is true or false.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialCondition {
    source: String,
    metrics: Vec<&'static Metric>,
}

impl TrialCondition {
    pub(crate) fn parse(source: &str) -> Result<TrialCondition, Fault> {
        let environment = arithmetic();
        let expression = compile(&environment, source)?;
        let names = expression.undeclared_variables(true).into_iter();
        let mut names: Vec<String> =
            names.filter(|name| !FUNCTIONS.contains(&name.as_str())).collect();
        names.sort();
        let mut metrics = Vec::new();
        for name in names {
            metrics.push(metric(&name).ok_or_else(|| unknown(&name, source))?);
        }
        if metrics.is_empty() {
            return Err(plain("the condition speaks of no metric"));
        }
        let condition = TrialCondition { source: source.to_owned(), metrics };
        let ones: Vec<f64> = condition.metrics.iter().map(|_| 1.0).collect();
        let value = condition.value(&ones).map_err(|e| fault(&e))?;
        if bool::try_from(value).is_err() {
            return Err(plain("the condition is neither true nor false"));
        }
        Ok(condition)
    }

    /// The metrics that it needs.
    pub fn metrics(&self) -> &[&'static Metric] {
        &self.metrics
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// True if it holds for a trial whose metrics have these values, in their order.
    pub fn is_true(&self, values: &[f64]) -> bool {
        self.value(values).ok().and_then(|value| bool::try_from(value).ok()).unwrap_or(false)
    }

    fn value(&self, values: &[f64]) -> Result<Value, Error> {
        let mut environment = arithmetic();
        for (metric, value) in self.metrics.iter().zip(values) {
            environment.add_global(metric.name, *value);
        }
        environment.compile_expression(&self.source)?.eval(())
    }
}

/// A word of logic outside quotes. With one, some trials would be asked for only depending on
/// others, and it would be unclear what a claim rests on.
fn logic(source: &str) -> Option<Range<usize>> {
    let mut at = 0;
    for (index, part) in source.split('\'').enumerate() {
        let words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let mut from = at;
        for word in words {
            if index % 2 == 0 && ["if", "else", "and", "or", "not"].contains(&word) {
                return Some(from..from + word.len());
            }
            let after = from + word.len();
            // At the end of the source nothing follows.
            from = after + source[after..].chars().next().map_or(0, char::len_utf8);
        }
        at += part.len() + 1;
    }
    None
}

/// More points than these are not listed.
const POINTS_LISTED_MAX: usize = 16;

/// Functions that expressions can call besides metrics.
const FUNCTIONS: [&str; 5] = ["abs", "log", "sqrt", "min", "max"];

/// Compiles an expression that fits the compiler's stack: it goes one call deeper with each sign.
fn compile<'e>(
    environment: &'e Environment<'static>,
    source: &'e str,
) -> Result<minijinja::Expression<'e, 'e>, Fault> {
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the expression has more than {SOURCE_BYTES_MAX} bytes");
        return Err(plain(&message));
    }
    if let Some(span) = foreign::foreign(source) {
        let message = format!("an expression is arithmetic, it knows no {}", &source[span.clone()]);
        return Err(Fault { message, hint: None, span: Some(span) });
    }
    environment.compile_expression(source).map_err(|e| fault(&e))
}

/// Ten times the longest that is read at a glance.
const SOURCE_BYTES_MAX: usize = 2_000;

/// Numbers and nothing else: none of the filters and functions that templates have.
fn arithmetic() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_debug(true);
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.add_function("abs", |x: f64| x.abs());
    environment.add_function("log", |x: f64| x.ln());
    environment.add_function("sqrt", |x: f64| x.sqrt());
    environment.add_function("min", |xs: Rest<f64>| xs.iter().copied().fold(f64::NAN, f64::min));
    environment.add_function("max", |xs: Rest<f64>| xs.iter().copied().fold(f64::NAN, f64::max));
    environment
}

/// The point and scope that the arguments of a metric name.
fn resolve(
    metric: &'static Metric,
    arguments: &[Value],
    targets: &[Target],
) -> Result<MetricReference, Error> {
    let mut texts = arguments.iter().map(Value::as_str);
    let (path, axes) = match (texts.next(), texts.next(), texts.next()) {
        (Some(Some(path)), None, None) => (path, ""),
        (Some(Some(path)), Some(Some(axes)), None) => (path, axes),
        _ => {
            let shape = format!("write {}('variant/scenario', 'axis=value')", metric.name);
            return Err(invalid(format!("{} speaks of a point: {shape}", metric.name)));
        }
    };
    let mut parts = path.splitn(3, '/');
    let (Some(variant), Some(scenario)) = (parts.next(), parts.next()) else {
        return Err(invalid(format!("\"{path}\" is not of the form 'variant/scenario'")));
    };
    let scope = parts.next().unwrap_or_default(); // An empty scope is the whole trial.
    let (of_phase, wanted): (Vec<_>, Vec<_>) =
        axes_of(axes)?.into_iter().partition(|(axis, _)| *axis == ScenarioPhase::AXIS);
    let there = |t: &&Target| t.name.variant == variant && t.name.scenario == scenario;
    if !targets.iter().any(|target| there(&target)) {
        let names: Vec<String> = targets
            .iter()
            .map(|target| format!("{}/{}", target.name.variant, target.name.scenario))
            .collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.dedup();
        let hint = nearest(&format!("{variant}/{scenario}"), &names);
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default(); // Nothing is near.
        return Err(invalid(format!(
            "no trial of this profile runs \"{variant}/{scenario}\"{hint}"
        )));
    }
    let mut fitting =
        targets.iter().enumerate().filter(|(_, target)| there(target)).filter(|(_, target)| {
            wanted.iter().all(|(axis, value)| has(&target.name, axis, value))
        });
    let Some((point, target)) = fitting.next() else {
        let there: Vec<String> = targets.iter().filter(there).map(axes_words).collect();
        let hint = match there.len() {
            1..=POINTS_LISTED_MAX => format!("; there is {}", there.join("; ")),
            _ => String::new(),
        };
        return Err(invalid(format!(
            "no trial of {variant}/{scenario} in this profile has {axes}{hint}"
        )));
    };
    if let Some((_, other)) = fitting.next() {
        let more = fitting.count() + 2;
        return Err(invalid(format!(
            "{more} trials fit, such as \"{}\" and \"{}\": name the axes",
            target.name, other.name
        )));
    }
    check_scope(metric, scope, target)?;
    let call = (metric.name.to_owned(), path.to_owned(), axes.to_owned());
    let scope = match of_phase.as_slice() {
        [] => scope.to_owned(),
        [(_, phase), rest @ ..] => {
            if !rest.is_empty() {
                return Err(invalid(format!("one phase at a time: \"{axes}\"")));
            }
            check_phase(metric, phase, target)?;
            ScenarioPhase::scope(scope, phase)
        }
    };
    Ok(MetricReference { metric, point, scope, call })
}

fn check_phase(metric: &Metric, phase: &str, target: &Target) -> Result<(), Error> {
    if target.phases.is_empty() {
        return Err(invalid(format!("{} has no phases", target.name)));
    }
    if !target.phases.iter().any(|name| name == phase) {
        let names: Vec<&str> = target.phases.iter().map(String::as_str).collect();
        // Without a name that is near the message has no hint.
        let hint = nearest(phase, &names).map(|hint| format!("; {hint}")).unwrap_or_default();
        return Err(invalid(format!("{} has no phase \"{phase}\"{hint}", target.name)));
    }
    if !metric.has_phases() {
        let message = format!("{} is a figure of the whole window: leave out phase", metric.name);
        return Err(invalid(message));
    }
    Ok(())
}

/// The axes of a point as a claim names them.
fn axes_words(target: &Target) -> String {
    let axes = target.name.axes.iter().map(|(axis, value)| format!("{axis}={value}"));
    axes.collect::<Vec<_>>().join(", ")
}

fn axes_of(text: &str) -> Result<Vec<(&str, &str)>, Error> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (axis, value) = pair
            .split_once('=')
            .ok_or_else(|| invalid(format!("\"{pair}\" is not of the form axis=value")))?;
        Ok((axis.trim(), value.trim()))
    });
    pairs.collect()
}

fn has(name: &PointName, axis: &str, value: &str) -> bool {
    name.axes.iter().any(|(a, v)| a == axis && v == value)
}

fn check_scope(metric: &Metric, scope: &str, target: &Target) -> Result<(), Error> {
    let known = match metric.scope {
        _ if scope.is_empty() => return Ok(()),
        // A label is what the server calls it, or an SQLSTATE.
        _ if !metric.label.is_empty() => return Ok(()),
        MetricScope::Workload => &target.workloads,
        MetricScope::Node => &target.nodes,
        MetricScope::Statement => return Ok(()),
        MetricScope::Trial | MetricScope::Machine => {
            let message = format!("{} speaks of the whole trial: leave out /{scope}", metric.name);
            return Err(invalid(message));
        }
    };
    if known.iter().any(|name| name == scope) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    // Nothing may be near.
    let hint = nearest(scope, &names).map(|hint| format!("; {hint}")).unwrap_or_default();
    Err(invalid(format!("\"{scope}\" is no part of {}{hint}", target.name)))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn plain(message: &str) -> Fault {
    Fault { message: message.to_owned(), hint: None, span: None }
}

/// More names are noise rather than help.
const NEAR_MAX: usize = 4;

fn unknown(name: &str, source: &str) -> Fault {
    let names: Vec<&str> = catalogue().map(|metric| metric.name).collect();
    let span = source.find(name).map(|at| at..at + name.len());
    let hint = nearest(name, &names).unwrap_or_else(|| {
        // A user may know a part of a name only.
        let near = names.iter().filter(|known| known.contains(name)).take(NEAR_MAX).copied();
        match near.collect::<Vec<_>>()[..] {
            [] => "`pgrig metrics` lists them".to_owned(),
            ref near => {
                format!(
                    "did you mean {}? `pgrig metrics {name}` tells them apart",
                    near.join(" or ")
                )
            }
        }
    });
    Fault { message: format!("unknown metric \"{name}\""), hint: Some(hint), span }
}

fn fault(error: &Error) -> Fault {
    let message = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    Fault { message, hint: None, span: error.range() }
}
