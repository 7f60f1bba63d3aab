//! plan → preflight → rounds → attempts → record.
//!
//! [`preflight`](Preflight::of) says what a study needs and what the machine has; [`run`] has the
//! sites of the study's points built, runs every trial of every round in the planned order, and
//! writes each attempt into the record as soon as it is over. [`StudyEvent`]s tell what happens meanwhile.
//!
//! Four folders, each of which uses those before it only:
//!
//! - `fit`: what a study needs, what the machine has, and what is in the way;
//! - `trial`: one trial. `schedule` does what is due inside a window, `meter` takes down what became of it, `figures` makes the catalogue's figures of
//!   what was measured, `aftermath` looks at what the load has left, `result` files it, `ending` says if it
//!   counts. `blame` and `crashes` say whose fault a failure was;
//! - `pairs`: two points whose clients take turns; [`versus`] does so for `pgrig compare`;
//! - `run`: all trials of a study, from the record's first page to its last.
//!
//! The files beside them are their common arguments: the request, the hosts and labs, the clock.
//!
//! Limits: nothing here prints or draws. Servers are the room `site`'s, checks the room `check`'s. Of
//! claims only controls are judged: one that fails stops the run.

mod again;
mod fit;
mod pairs;
mod run;
mod script_rows;
mod trial;

mod clock;
mod error;
mod facts;
mod fleet;
mod full_disk;
mod platform;
mod request;

pub use again::{StateRequest, look_again};
pub use error::{ChoiceError, DryRunError, Error, SearchError, SidesError};
pub use facts::machine as machine_facts;
pub use fit::commands::commands;
pub use fit::estimate::PlanEstimate;
pub use fit::has::MachineResources;
pub use fit::misfit::PointMisfit;
pub use fit::misfit::ResourceNeed;
pub use fit::mistakes::mistakes;
pub use fit::preflight::{PointPair, Preflight};
pub use fit::programs::StudyPrograms;
pub use fit::unprepared::with_protocols;
pub use pairs::options::ComparedLoad;
pub use pairs::production::ProductionOptions;
pub use pairs::side::{PairData, SideOptions};
pub use pairs::versus::{
    ComparisonLoad, ComparisonRequest, ComparisonResult, VariantChoice, VariantPair, versus,
    versus_loads,
};
pub use platform::has_on_hosts;
pub use request::{OnHosts, RecordPlace, StudyRequest, StudyServers};
pub use run::dry_run::dry_run;
pub use run::event::StudyEvent;
pub use run::search::{SearchEvent, SearchRequest, SearchResult, search, search_plan};
pub use run::{RunResult, run};
pub use trial::stage::LoadStage;
