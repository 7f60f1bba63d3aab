//! The options that were given so far.

use load::{OnHostLoss, Protocol, ScriptRows};
use script::{RandomSeed, ScriptSyntax, ScriptWeight};

use super::row::{Done, Mode, Row, Take};
use super::values::{Arrivals, builtin, goal, is_tpcc, script_text, weighted};
use super::{
    Length, LoadProgress, Origin, OurOptions, PartitionMethod, Persistence, PoolSizes, Range,
    Request, Script, ServerOptions,
};
use crate::complaint::Complaint;
use crate::major::{Major, SpokenBy};
use crate::search::goal::Goal;
use crate::tpcc;

/// The most scripts that pgbench takes, and that pgrig does.
const SCRIPTS_MAX: usize = 128;
const OUR_SCRIPTS_MAX: usize = 4_096;

/// Every option as it was given, or its default.
#[derive(Default)]
pub(super) struct Given {
    pub(super) server: ServerOptions,
    pub(super) debug: bool,
    pub(super) without_io_uring: bool,
    pub(super) major: Major,
    pub(super) spoken_by: SpokenBy,
    pub(super) initialise: bool,
    /// The options in the order in which they were given.
    pub(super) rows: Vec<&'static Row>,
    /// A request that pgbench fulfils as soon as it meets the option.
    pub(super) at_once: Option<Request>,
    pub(super) steps: Option<String>,
    pub(super) scale: Option<u32>,
    pub(super) fillfactor: Option<u32>,
    pub(super) progress: Option<LoadProgress>,
    pub(super) partitions: Option<u32>,
    pub(super) partition_method: Option<PartitionMethod>,
    pub(super) tablespace: Option<String>,
    pub(super) index_tablespace: Option<String>,
    pub(super) persistence: Option<Persistence>,
    pub(super) foreign_keys: bool,
    pub(super) no_vacuum: bool,
    pub(super) vacuum_all: bool,
    pub(super) scripts: Vec<Script>,
    /// The rows that they draw from.
    pub(super) drawn_rows: Vec<ScriptRows>,
    pub(super) clients: Option<u32>,
    pub(super) lanes: Option<u32>,
    pub(super) protocol: Option<Protocol>,
    pub(super) transactions: Option<u32>,
    pub(super) seconds: Option<u32>,
    pub(super) connect_each: bool,
    pub(super) variables: Vec<(String, String)>,
    pub(super) rate: Option<f64>,
    pub(super) latency_limit_us: Option<u64>,
    pub(super) progress_s: Option<u32>,
    pub(super) progress_timestamp: bool,
    pub(super) per_command: bool,
    pub(super) log: bool,
    pub(super) log_prefix: Option<String>,
    pub(super) sampling_rate: Option<f64>,
    pub(super) aggregate_s: Option<u32>,
    pub(super) last_stretch: bool,
    pub(super) failures_detailed: bool,
    pub(super) max_tries: Option<u32>,
    pub(super) continue_on_error: bool,
    pub(super) verbose_errors: bool,
    pub(super) exit_on_abort: bool,
    pub(super) seed: Option<RandomSeed>,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) find: Option<(Range, Goal)>,
    pub(super) find_seconds: Option<u32>,
    pub(super) capacity: Option<Goal>,
    pub(super) pool_sizes: Option<PoolSizes>,
    pub(super) server_cpus: Option<Vec<f64>>,
    pub(super) server_cpus_command: Option<String>,
    pub(super) curve: Option<String>,
    pub(super) connections: Option<u32>,
    pub(super) resume: bool,
    pub(super) hosts: Option<String>,
    pub(super) on_host_loss: Option<OnHostLoss>,
    pub(super) push: bool,
    pub(super) ours: OurOptions,
}

impl Given {
    pub(super) fn take(&mut self, row: &'static Row, value: &str) -> Done {
        self.rows.push(row);
        // An option of both modes is older than its row, which is about its spelling.
        if let SpokenBy::Server { newest } = &mut self.spoken_by
            && row.mode != Mode::Both
            && newest.is_none_or(|(_, since)| since < row.majors.0)
        {
            *newest = Some((row.long, row.majors.0));
        }
        match row.take {
            Take::Flag(take) => take(self),
            Take::Value(_, take) => take(self, value),
        }
    }

    /// True if scripts are pgbench's: a version of it was chosen.
    fn is_pgbenchs(&self) -> bool {
        self.spoken_by == SpokenBy::Choice
    }

    /// The language of the scripts.
    pub(super) fn syntax(&self) -> ScriptSyntax {
        match self.ours.syntax {
            ScriptSyntax::Current if self.is_pgbenchs() => ScriptSyntax::Pgbench,
            syntax => syntax,
        }
    }

    /// Does this instead of a run.
    pub(super) fn at_once(&mut self, request: Request) -> Done {
        self.at_once = Some(request);
        Ok(())
    }

    /// The length of the run.
    pub(super) fn length(&self) -> Length {
        match self.seconds {
            Some(seconds) => Length::Seconds(seconds),
            None => Length::Transactions(self.transactions.unwrap_or(10)),
        }
    }

    pub(super) fn find(&mut self, range: Range, value: &str) -> Done {
        if self.find.as_ref().is_some_and(|(other, _)| *other != range) {
            let text = "--find-rate and --find-clients cannot be used at the same time";
            return Err(Complaint::error(text));
        }
        self.find = Some((range, goal(value)?));
        Ok(())
    }

    pub(super) fn add_builtin(&mut self, name: &str, weight: u32) -> Done {
        if is_tpcc(name) {
            return tpcc::MIX.iter().try_for_each(|part| {
                self.add_script(Script {
                    name: part.description.to_owned(),
                    text: part.text.to_owned(),
                    weight: weight.saturating_mul(part.weight),
                    commands: 0,
                    reads_as_nine_x: false,
                    origin: Origin::Tpcc,
                })
            });
        }
        let builtin = builtin(name)?;
        self.add_script(Script {
            name: builtin.description.to_owned(),
            text: builtin.text.to_owned(),
            weight,
            commands: 0,
            reads_as_nine_x: false,
            origin: Origin::Builtin,
        })
    }

    pub(super) fn add_file(&mut self, value: &str) -> Done {
        let ScriptWeight { name, weight } = weighted(value)?;
        let text = script_text(&name)?;
        self.add_script(Script {
            name,
            text,
            weight,
            commands: 0,
            reads_as_nine_x: false,
            origin: Origin::File,
        })
    }

    fn add_script(&mut self, script: Script) -> Done {
        let max = if self.is_pgbenchs() { SCRIPTS_MAX } else { OUR_SCRIPTS_MAX };
        if self.scripts.len() >= max {
            let text = format!("at most {max} SQL scripts are allowed");
            return Err(Complaint::error(text));
        }
        self.scripts.push(script);
        Ok(())
    }
}
