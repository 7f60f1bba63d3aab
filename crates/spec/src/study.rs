//! A study: a question with everything needed to answer it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::Check;
use crate::claim::{Claim, ClaimSubject, StudyAnswer};
use crate::defaults::Defaults;
use crate::expand;
use crate::expression::Target;
use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::headline;
use crate::named::NamedItem;
use crate::nemesis::NemesisSettings;
use crate::pairing;
use crate::phase_table;
use crate::point::{PointName, TrialPoint};
use crate::problem::{Problems, StudyProblem};
use crate::profile::StudyProfile;
use crate::published::{self, PublishedFigure};
use crate::schedules;
use crate::set;
use crate::table::StudyTable;
use crate::tables::Tables;
use crate::twin::{self, TwinPoint};
use crate::value;

/// A study in one profile. Only valid ones exist: a caller need not check it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The folder's name.
    pub name: String,
    /// The question.
    pub question: String,
    /// Notes to read before the figures, one paragraph each.
    pub notes: Vec<String>,
    /// The profile that it was read in.
    pub profile: StudyProfile,
    /// Seed of everything random: the order of trials, moments of actions, keys.
    pub seed: u64,
    /// True if study.toml or [`Study::with_seed`] gave the seed. If neither did, a run draws a new
    /// one, so that runs differ in the order of their trials.
    pub is_seed_given: bool,
    /// Variants that it compares, in the order of the file.
    pub variants: Vec<NamedItem>,
    /// Scenarios that it runs, in the order of the file.
    pub scenarios: Vec<NamedItem>,
    /// For how many seconds pg_test_fsync tries each wal_sync_method, on the disk that the lab's
    /// data lie on; 0 for not at all.
    pub flush_test_s: u64,
    /// Every variant × scenario × value of each axis that this profile runs.
    pub points: Vec<TrialPoint>,
    /// The point that is measured twice in every round, for the noise of the machine; none where
    /// the study compares no throughput.
    pub twin: Option<TwinPoint>,
    /// Wording of its answer; without it, the first claim speaks.
    pub answer: Option<StudyAnswer>,
    /// The claims; the first one is the headline.
    pub claims: Vec<Claim>,
    /// Statements of claims that only other profiles make about points that this one has. They are not judged
    /// here; they say what is expected of the points.
    pub expected: Vec<ClaimSubject>,
    /// Tables of its own.
    pub tables: Vec<StudyTable>,
    /// Published figures.
    pub published: Vec<PublishedFigure>,
    /// What it says of the search for a schedule of faults that breaks a promise.
    pub nemesis: NemesisSettings,
}

impl Study {
    /// Reads a study's folder in one profile.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place, in the order of the file.
    pub fn parse(folder: &StudyFolder, profile: StudyProfile) -> Result<Study, Vec<StudyProblem>> {
        let problems = Problems::of(StudyFolder::STUDY);
        let Some(text) = folder.files.get(StudyFolder::STUDY) else {
            problems.hinted(
                &(0..0),
                format!("the folder \"{}\" holds no study.toml", folder.name),
                "`pgrig new DIR` writes one to start from",
            );
            return Err(problems.into_sorted());
        };
        if StudyProfile::of(folder).all(|one| one != profile) {
            let message = format!("the study has no profile {profile}: it rests on no source");
            problems.hinted(
                &(0..0),
                message,
                format!("{} would hold its figures", StudyFolder::PUBLISHED),
            );
            return Err(problems.into_sorted());
        }
        let mut table = value::parse(text, &problems);
        if !problems.is_empty() {
            return Err(problems.into_sorted());
        }
        let unset = set::apply(&mut table, folder);
        if !unset.is_empty() {
            return Err(unset);
        }
        let unlike = schedules::apply(&mut table, folder);
        if !unlike.is_empty() {
            return Err(unlike);
        }
        let table = value::choose_profile(&table, profile, &problems);
        if !problems.is_empty() {
            return Err(problems.into_sorted());
        }
        let fields = Fields::new("a study", &table, 0..0, &problems);
        let published_problems = Problems::of(StudyFolder::PUBLISHED);
        let study = read(&fields, folder, text, profile, &published_problems);
        fields.finish();
        let mut found = problems.into_sorted();
        found.extend(published_problems.into_sorted());
        if found.is_empty() { Ok(study) } else { Err(found) }
    }

    /// The point that a trial's variant, scenario and axes name.
    pub fn point(
        &self,
        variant: &str,
        scenario: &str,
        axes: &BTreeMap<String, String>,
    ) -> Option<usize> {
        self.points.iter().position(|point| {
            let name = &point.name;
            name.variant == variant
                && name.scenario == scenario
                && name.axes.len() == axes.len()
                && name.axes.iter().all(|(axis, value)| axes.get(axis) == Some(value))
        })
    }

    /// The same study with another number of rounds at every point.
    pub fn with_rounds(mut self, rounds: u32) -> Study {
        self.points.iter_mut().for_each(|point| point.rounds = rounds);
        self
    }

    /// The same study with another seed.
    pub fn with_seed(mut self, seed: u64) -> Study {
        self.seed = seed;
        self.is_seed_given = true;
        self
    }

    /// The study of two of its points, each as the variant that has the name of its side. Its own claims,
    /// tables and answer are left out.
    #[must_use]
    pub fn versus(&self, points: [usize; 2], sides: [&str; 2]) -> Study {
        let side = |side: usize| {
            let mut point = self.points[points[side]].clone();
            sides[side].clone_into(&mut point.name.variant);
            point
        };
        let named = |name: &str| NamedItem { name: name.to_owned(), says: String::new() };
        Study {
            points: vec![side(0), side(1)],
            variants: sides.map(named).into(),
            claims: Vec::new(),
            expected: Vec::new(),
            tables: Vec::new(),
            published: Vec::new(),
            answer: None,
            twin: None,
            ..self.clone()
        }
    }

    /// The same study with the claims of a text, in the place of its own.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn with_claims(self, text: &str) -> Result<Study, Vec<StudyProblem>> {
        let problems = Problems::of(StudyFolder::STUDY);
        let table = value::parse(text, &problems);
        let fields = Fields::new("claims", &table, 0..0, &problems);
        let StudyStatements { claims, .. } =
            claims(&fields, text, self.profile, &self.points, false);
        fields.finish();
        let found = problems.into_sorted();
        if found.is_empty() { Ok(Study { claims, ..self }) } else { Err(found) }
    }
}

fn read(
    fields: &Fields<'_>,
    folder: &StudyFolder,
    text: &str,
    profile: StudyProfile,
    published_problems: &Problems,
) -> Study {
    let problems = fields.problems;
    fields.required("question");
    let tables = Tables {
        profile,
        folder,
        problems,
        settings: fields.value("settings"),
        data: fields.value("data"),
        topologies: fields.named("topologies"),
        variants: fields.named("variants"),
        workloads: fields.named("workloads"),
        scenarios: fields.named("scenarios"),
        defaults: Defaults::of(profile).or(fields),
    };
    let mut points = expand::points(&tables);
    if tables.scenarios.is_empty() {
        let hint = "add [scenarios.NAME] with run = [\"WORKLOAD\"]";
        problems.hinted(fields.span(), "a study has at least one scenario", hint);
    } else if points.is_empty() && problems.is_empty() {
        problems.add(fields.span(), format!("profile {profile} runs nothing"));
    }
    let mut variants = expand::named(tables.variants);
    if variants.is_empty() {
        variants = expand::named(&[expand::default_variant()]);
    }
    let scenarios = expand::named(tables.scenarios);
    let declared = variants.clone();
    // Claims speak of points; while those are wrong, what claims say of them means nothing.
    let read = |points: &[TrialPoint]| match problems.is_empty() {
        true => claims(fields, text, profile, points, folder.files.contains_key(StudyFolder::SET)),
        false => skip(fields),
    };
    let StudyStatements { mut claims, mut expected, mut tables, mut answer, mut left_out } =
        read(&points);
    headline::rank(&mut claims, problems);
    pairing::check(&claims, &points, problems);
    pairing::part_servers(&claims, &mut points);
    let twin = twin::add(&mut points, &mut variants, &claims, profile);
    if twin.is_some() {
        // What is said of every trial is said of the twin's, too.
        StudyStatements { claims, expected, tables, answer, left_out } = read(&points);
        headline::rank(&mut claims, problems);
    }
    for table in &mut tables {
        // The second copy of a point is there for the noise.
        table.rows.retain(|row| !row.is_of_each || twin.is_none_or(|it| row.points != [it.point]));
        for row in table.rows.iter_mut().filter(|row| row.is_of_each) {
            row.says = row_of_point(&points[row.points[0]].name, &scenarios, &variants);
            if !row.phase.is_empty() {
                row.says = format!("{}, phase {}", row.says, row.phase);
            }
        }
    }
    let names = |named: &'_ [NamedItem]| named.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
    let (variant_names, scenario_names) = (names(&declared), names(&scenarios));
    let variant_names: Vec<&str> = variant_names.iter().map(String::as_str).collect();
    let scenario_names: Vec<&str> = scenario_names.iter().map(String::as_str).collect();
    let seed = fields.integer("seed", 0..=i64::MAX);
    let nemesis = fields.value("nemesis");
    // Faults are those of a topology, which is not known while the points are wrong.
    let nemesis = nemesis.filter(|_| problems.is_empty());
    let nemesis =
        nemesis.and_then(|value| NemesisSettings::parse(value, &points, folder, problems));
    Study {
        name: folder.name.clone(),
        // That it is missing was said.
        question: fields.text("question").unwrap_or_default().to_owned(),
        notes: set::note(folder, left_out)
            .into_iter()
            .chain(fields.texts("notes").into_iter().map(|(note, _)| note))
            .collect(),
        profile,
        seed: seed.unwrap_or(0) as u64, // `is_seed_given` tells.
        is_seed_given: seed.is_some(),
        // Flushes are measured only where a study asks for it.
        flush_test_s: fields.duration_ms("flush_test").unwrap_or(0).div_ceil(1000),
        points,
        twin,
        answer,
        claims,
        expected,
        tables,
        published: published::parse(folder, &variant_names, &scenario_names, published_problems),
        variants,
        scenarios,
        // A study that says nothing has the shipped default.
        nemesis: nemesis.unwrap_or_default(),
    }
}

/// What a row of one point says: its scenario, its axes, its variant, in words where they have some.
fn row_of_point(name: &PointName, scenarios: &[NamedItem], variants: &[NamedItem]) -> String {
    let label = |all: &[NamedItem], name: &str| {
        all.iter()
            .find(|one| one.name == name)
            .map_or(name.to_owned(), |one| one.label().to_owned())
    };
    let axes = name.axes.iter().map(|(axis, value)| format!("{axis} {value}"));
    let scenario = [label(scenarios, &name.scenario)].into_iter().chain(axes);
    format!("{}: {}", scenario.collect::<Vec<_>>().join(", "), label(variants, &name.variant))
}

/// Statements about points.
#[derive(Default)]
pub(crate) struct StudyStatements {
    pub(crate) claims: Vec<Claim>,
    /// Statements of claims that only other profiles make.
    expected: Vec<ClaimSubject>,
    tables: Vec<StudyTable>,
    answer: Option<StudyAnswer>,
    /// Claims that do not fit values that were set.
    left_out: usize,
}

/// Reads what is said. Where a run sets values, what no longer fits them is left out: a claim about
/// 8 clients where 2 are run. The words of the answer, which speak of claims, go with it.
pub(crate) fn claims(
    fields: &Fields<'_>,
    text: &str,
    profile: StudyProfile,
    points: &[TrialPoint],
    is_set: bool,
) -> StudyStatements {
    let targets: Arc<[Target]> = points.iter().map(target).collect();
    let mut left_out = 0;
    let problems_of_one = || Problems::of(StudyFolder::STUDY);
    let (mut claims, mut expected) = (Vec::new(), Vec::new());
    for one in fields.list("claims") {
        expected.extend(Claim::of_another_profile(one, text, profile, &targets));
        let own = problems_of_one();
        let problems = if is_set { &own } else { fields.problems };
        let claim = Claim::parse(one, text, profile, &targets, problems);
        match own.is_empty() {
            true => claims.extend(claim),
            false => left_out += 1,
        }
    }
    let mut tables: Vec<StudyTable> = phase_table::of(points, &targets).into_iter().collect();
    for one in fields.list("tables") {
        let own = problems_of_one();
        let problems = if is_set { &own } else { fields.problems };
        let table = StudyTable::parse(one, text, profile, &targets, problems);
        tables.extend(table.filter(|_| own.is_empty()));
    }
    let own = problems_of_one();
    let problems = if is_set { &own } else { fields.problems };
    let answer = fields.value("answer");
    let answer = answer.and_then(|one| StudyAnswer::parse(one, text, profile, &targets, problems));
    let answer = answer.filter(|_| own.is_empty() && left_out == 0);
    StudyStatements { claims, expected, tables, answer, left_out }
}

fn skip(fields: &Fields<'_>) -> StudyStatements {
    for key in ["claims", "tables", "answer"] {
        fields.entry(key);
    }
    StudyStatements::default()
}

fn target(point: &TrialPoint) -> Target {
    let nodes = point.topology.nodes.iter().map(|node| &node.name);
    let links = point.topology.links.iter().map(|link| &link.name);
    Target {
        name: point.name.clone(),
        workloads: point.workloads.iter().map(|workload| workload.name.clone()).collect(),
        nodes: nodes.chain(links).cloned().collect(),
        queries: point.checks.iter().filter_map(Check::query).map(str::to_owned).collect(),
        phases: point.phases.iter().map(|phase| phase.name.clone()).collect(),
    }
}
