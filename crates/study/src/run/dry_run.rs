//! The statements that a run would send to a server of the user's, made by the code that sends them.

use lab::guest::{self, SchemaBoundary};
use lab::{TARGET_SCHEMA, Target};
use load::{LoadControl, LoadPlan};
use site::{SitePlan, outside, sql, warm};
use spec::{Action, Check, TrialPoint};

use crate::error::{DryRunError, Error};
use crate::fit::has::{self, MachineResources};
use crate::fit::outside_misfit;
use crate::fit::preflight::Preflight;
use crate::request::{StudyRequest, StudyServers};
use crate::trial::load_plan;

/// The statements that a run on a target would send, in order, as text with comments in SQL. The
/// server is asked what it has and is not changed.
pub fn dry_run(request: &StudyRequest, control: &LoadControl) -> Result<String, Error> {
    let StudyServers::Outside { conninfo, rights } = &request.servers else {
        return Ok("-- nothing: the servers are pgrig's own\n".to_owned());
    };
    let target = outside::open(conninfo, control)?;
    let trials = request.trials();
    let has = MachineResources::outside(&target, &std::env::temp_dir())?;
    let preflight = Preflight::of(&request.study, &trials, &has);
    if preflight.refused {
        return Err(Error::DoesNotFit(Box::new(preflight)));
    }
    let mut points: Vec<usize> = trials.iter().map(|trial| trial.point).collect();
    points.retain(|point| preflight.reason(*point).is_none());
    points.sort_unstable();
    points.dedup();
    let mut listing = Listing::default();
    listing.title("what the server is and has; read before anything else");
    listing.all(has::OUTSIDE);
    listing.title("whether a run may begin here");
    listing.all(&guest::LOOKS);
    listing.title("the schema of the run, and its role where it makes one; RUN is its id");
    let boundary = guest::list_beginning(&target, *rights, &mut listing.statements)?;
    if let Some(SchemaBoundary::MadeRole { .. }) = boundary {
        listing.title(
            "from here on as the role of the run; samples as you where you see all statistics",
        );
    }
    for plan in SitePlan::on_target(&request.study, &points) {
        listing.title(&format!("data of {}", plan.name(&request.study)));
        listing.path();
        let listed = site::list_data(&plan.data, &target, TARGET_SCHEMA, &mut listing.statements);
        let failed = |source| {
            let source = Box::new(source);
            Error::Listing { site: plan.name(&request.study), source }
        };
        listed.map_err(|error| failed(error.into()))?;
        listing.flush();
    }
    for index in points {
        let point = &request.study.points[index];
        let times = trials.iter().filter(|trial| trial.point == index).count() as u64;
        listing.title(&format!("trial {}, {}", point.name, terms::counted(times, "time")));
        let planned = trials.iter().find(|trial| trial.point == index);
        let plan = planned.map(|planned| {
            let conninfos = Default::default();
            load_plan::plan(point, planned, &conninfos, Some(TARGET_SCHEMA))
        });
        trial(point, plan.as_ref(), &target, &mut listing)?;
    }
    listing.title("the end");
    guest::list_end(boundary.as_ref(), &mut listing.statements)?;
    listing.flush();
    Ok(listing.text)
}

fn trial(
    point: &TrialPoint,
    plan: Option<&LoadPlan>,
    target: &Target,
    listing: &mut Listing,
) -> Result<(), Error> {
    if let Some(ways) = &point.data.warm {
        let mut client = target.connect()?;
        listing.path();
        let statements = warm::statements(&mut client, ways);
        listing.statements.extend(statements.map_err(|error| refused(point, error))?);
        listing.flush();
    }
    if !point.before.is_empty() {
        listing.path();
    }
    for step in &point.before {
        let text = spec::ScriptText { name: "before".to_owned(), text: step.sql.clone() };
        let commands = sql::commands(&text, &spec::VariableValues::new());
        for command in commands.map_err(|error| refused(point, error))? {
            listing.statements.push(command.sql);
        }
        listing.flush();
    }
    for check in &point.checks {
        if let Check::Sql(compared) = check
            && compared.expect.needs_before()
        {
            self::check(&compared.name, check, listing);
        }
    }
    listing.comment("the probes, second by second");
    listing.all(&probe::statements(target.major()));
    for workload in plan.iter().flat_map(|plan| &plan.workloads) {
        listing.comment(&format!(
            "{} clients of {}, with these settings in their start-up message, and these commands \
             as often as they get through",
            workload.clients, workload.name
        ));
        for (name, value) in &workload.session {
            listing.comment(&format!("{name} = {value}"));
        }
        for rows in &workload.rows {
            if let load::RowsContent::Query(text) = &rows.content {
                listing.comment(&format!("{}, once, for its rows", rows.source.path));
                listing.statements.push(text.to_string());
            }
        }
        for script in &workload.scripts {
            listing.comment(&script.name);
            let text = spec::ScriptText { name: script.name.clone(), text: script.text.clone() };
            listing.statements.extend(outside_misfit::as_written(&text, script.syntax));
            listing.flush();
        }
    }
    for timed in &point.timeline {
        let sql = match &timed.action {
            Action::Sql { sql, .. } => sql.as_str(),
            Action::Checkpoint { .. } => "CHECKPOINT",
            _ => continue,
        };
        listing.path();
        listing.statements.push(sql.to_owned());
    }
    listing.flush();
    for check in &point.checks {
        match check {
            Check::Sql(one) => self::check(&one.name, check, listing),
            Check::Explain(one) => self::check(&one.name, check, listing),
            _ => {}
        }
    }
    Ok(())
}

fn check(name: &str, check: &Check, listing: &mut Listing) {
    listing.comment(&format!("check {name}"));
    listing.path();
    listing.all(&check::sql_of(check));
}

fn refused(point: &TrialPoint, error: impl Into<DryRunError>) -> Error {
    Error::Listing { site: point.name.to_string(), source: Box::new(error.into()) }
}

/// Statements and comments, in order.
#[derive(Default)]
struct Listing {
    text: String,
    statements: Vec<String>,
}

impl Listing {
    fn title(&mut self, title: &str) {
        self.flush();
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.comment(title);
    }

    fn comment(&mut self, comment: &str) {
        self.flush();
        self.text.push_str(&format!("-- {comment}\n"));
    }

    /// Adds the statement that sets the one schema in which names are looked for.
    fn path(&mut self) {
        self.statements.push(guest::set_path(TARGET_SCHEMA));
    }

    fn all<S: AsRef<str>>(&mut self, statements: &[S]) {
        self.statements.extend(statements.iter().map(|one| one.as_ref().to_owned()));
        self.flush();
    }

    fn flush(&mut self) {
        for statement in self.statements.drain(..) {
            let statement = statement.trim();
            self.text.push_str(statement);
            let is_ended = statement.ends_with(';') || statement.contains("; -- ");
            self.text.push_str(if is_ended { "\n" } else { ";\n" });
        }
    }
}
