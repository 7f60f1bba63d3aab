//! `--own-server`: a server that the rig builds for one run, with pgbench's tables. Its CPU time can be limited.

use lab::{CpuLimit, Lab, LabConfig, Node, NodeConfig, Settings};
use load::LoadControl;

use crate::bench;
use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{CpusBy, Invocation, RunOptions, ServerOptions};

/// Connections beside those of the clients.
const SPARE_CONNECTIONS: u32 = 10;

/// A server of the rig's. It ends, and its directory is removed, when this is dropped, and also if the rig is killed.
pub(super) struct OwnServer {
    node: Node,
    limit: Option<CpuLimit>,
    // After the node, which is in it.
    _lab: Lab,
}

impl OwnServer {
    /// Builds the server and pgbench's tables of the scale in the options.
    ///
    /// # Errors
    /// Without PostgreSQL here, or a way to limit its CPU time where that is asked for.
    pub(super) fn build(
        options: &RunOptions,
        invocation: &Invocation<'_>,
        control: &LoadControl,
        console: &mut Console<'_>,
    ) -> Result<OwnServer, Complaint> {
        expect_limits(options)?;
        let scale = options.scale.expect("--own-server needs -s");
        let connections = options.clients.saturating_add(SPARE_CONNECTIONS).max(100);
        let settings = Settings::from_iter([("max_connections", connections.to_string())]);
        let build = || {
            let lab = Lab::open(LabConfig::new(lab::find::find(None)?))?;
            let mut node = lab.node("server", NodeConfig::new(settings))?;
            node.init()?;
            node.start()?;
            Ok((lab, node))
        };
        let (lab, node) = build().map_err(|error| could_not("build", &error))?;
        let version = lab.installation().version().text.clone();
        console.narrate(format_args!(
            "pgrig: server            built for this run: PostgreSQL {version}, tables of scale {scale}, max_connections \
             {connections}, everything else as initdb leaves it"
        ));
        let built = OwnServer { node, limit: None, _lab: lab };
        let place = built.node.endpoint().to_string();
        // Nothing is there that could be dropped.
        let words = ["-i", "-I", "tgvp", "-q", "-s", &scale.to_string(), &place].map(str::to_owned);
        let here = built.invocation(invocation, &words);
        bench::initialise(&here, control, console)?;
        Ok(built)
    }

    /// The server, as options of the command line name it.
    pub(super) fn options(&self) -> ServerOptions {
        ServerOptions { dbname: Some(self.node.endpoint().to_string()), ..ServerOptions::default() }
    }

    /// An invocation to which the environment says nothing about a server.
    pub(super) fn invocation<'a>(
        &self,
        invocation: &Invocation<'a>,
        arguments: &'a [String],
    ) -> Invocation<'a> {
        Invocation { arguments, environment: &|_| None, schema: None, ..*invocation }
    }

    /// Lets the server have the time of so many CPUs from now on.
    pub(super) fn limit_cpus(&mut self, cpus: f64) -> Result<(), Complaint> {
        // The old one's processes go back to where they were first, so that none is left between the two.
        self.limit = None;
        let limit = self.node.limit_cpus(cpus).map_err(|error| could_not("limit", &error))?;
        self.limit = Some(limit);
        Ok(())
    }
}

/// Refuses numbers of CPUs that this machine cannot give a server of the rig's.
fn expect_limits(options: &RunOptions) -> Result<(), Complaint> {
    let capacity = options.ours.capacity.as_ref();
    let cpus = capacity.and_then(|asked| asked.server_cpus.as_ref());
    // Nothing is limited where the numbers are those of a command, or none are given.
    let Some(cpus) = cpus.filter(|cpus| cpus.by == CpusBy::OwnServer) else { return Ok(()) };
    let here = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
    let is_refused = |count: &&f64| **count > here || **count < lab::CPUS_MIN;
    if let Some(count) = cpus.counts.iter().find(is_refused) {
        return Err(Complaint::error(format_args!(
            "--own-server cannot have {count} of the {here} CPUs of this machine: from {} to {here} can be given",
            lab::CPUS_MIN
        )));
    }
    lab::machine::cpu_limits().map_err(|error| {
        Complaint::error(format_args!(
            "the CPUs of a server cannot be limited here, as --server-cpus with --own-server asks for: {error}"
        ))
        .with_our_hint(
            "run as root where the control groups of the kernel can be written, or name a server of yours and the \
             command that changes its CPUs (--server-cpus-command)",
        )
    })
}

fn could_not(what: &str, error: &lab::Error) -> Complaint {
    let complaint =
        Complaint::error(format_args!("could not {what} the server of --own-server: {error}"));
    match error.hint() {
        Some(hint) => complaint.with_our_hint(hint),
        None => complaint,
    }
}
