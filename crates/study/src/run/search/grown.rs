//! A study that grows by a scenario for each schedule that a search asks for.

use nemesis::{FaultSchedule, ScheduleTrial};
use spec::{NemesisPlan, PointName, ScheduledTrial, Study, StudyFolder};

use crate::error::{Error, SearchError};
use crate::request::StudyRequest;

/// A study and its schedules so far.
pub(super) struct GrowingStudy {
    /// The request with all schedules so far.
    pub(super) request: StudyRequest,
    /// The point whose scenario the schedules are like.
    of: PointName,
    plan: NemesisPlan,
    /// The timeline of each schedule, by its number from 1.
    timelines: Vec<Vec<String>>,
}

impl GrowingStudy {
    pub(super) fn new(asked: &StudyRequest, of: PointName, plan: NemesisPlan) -> GrowingStudy {
        let mut request = asked.clone();
        request.only = Some(format!("{}/schedule_*", of.variant));
        GrowingStudy { request, of, plan, timelines: Vec::new() }
    }

    /// The name of the scenario of a schedule.
    pub(super) fn name(number: usize) -> String {
        format!("schedule_{number}")
    }

    /// The study with this schedule, and the trial of it that is asked for.
    pub(super) fn with(
        &mut self,
        schedule: &FaultSchedule,
        experiment: &ScheduleTrial,
        number: usize,
    ) -> Result<(StudyRequest, ScheduledTrial), Error> {
        if experiment.number > self.timelines.len() {
            self.timelines.push(self.plan.timeline(schedule));
            let numbers = 1..=self.timelines.len();
            self.request = self.with_schedules(numbers)?;
        }
        let scenario = GrowingStudy::name(experiment.number);
        let study = &self.request.study;
        let is_meant = |point: &spec::TrialPoint| {
            let name = &point.name;
            name.scenario == scenario
                && name.variant == self.of.variant
                && name.axes == self.of.axes
        };
        let point = study.points.iter().position(is_meant);
        let point = point.ok_or_else(|| SearchError::Schedule {
            schedule: scenario.clone(),
            why: "the study does not run it".to_owned(),
        })?;
        let timeline = study.points[point].timeline.iter();
        let at_ms = timeline.map(|timed| timed.earliest_ms).collect();
        let seed = super::load_seed(study.seed, number);
        let planned = ScheduledTrial { number, round: experiment.run, point, seed, at_ms };
        Ok((self.request.clone(), planned))
    }

    /// The study with some of its schedules.
    pub(super) fn with_schedules(
        &self,
        numbers: impl Iterator<Item = usize>,
    ) -> Result<StudyRequest, Error> {
        let named: Vec<(String, &[String])> = numbers
            .map(|number| (GrowingStudy::name(number), self.timelines[number - 1].as_slice()))
            .collect();
        let named = named.iter().map(|(name, timeline)| (name.as_str(), *timeline));
        let text = StudyFolder::schedules_text(&self.of, &self.plan.promises, named);
        let mut request = self.request.clone();
        request.folder.files.insert(StudyFolder::SCHEDULES.to_owned(), text);
        let study = Study::parse(&request.folder, request.study.profile);
        let study = study.map_err(|problems| {
            let why = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            SearchError::Schedule { schedule: GrowingStudy::name(self.timelines.len()), why }
        })?;
        request.study = study.with_seed(request.study.seed);
        Ok(request)
    }
}
