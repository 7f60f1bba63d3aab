//! The lines of generators and the answers of servers, for fuzz targets.

use std::{
    sync::mpsc::sync_channel,
    time::{Duration, Instant},
};

use script::{Protocol, ScriptSyntax, Xoroshiro128};
use stats::LatencyHistogram;

use crate::{
    ClientGroup, LoadControl, LoadLimit, LoadPlan, LoadScript, WarmUp,
    carried::Carried,
    conductor::{self, AfterLoss, Workers},
    foreign::Suspect,
    generators::listen,
    grid::Grid,
    program::{CommonSettings, Program},
    report::{Loss, Report},
    session::{LaneContext, Session, Wait},
    tally::{FirstErrors, Open, Statement, Tally, Totals},
};
use record::Moment;

/// Scripts of the client whose server says anything.
const SCRIPTS: [(&str, Protocol); 3] = [
    ("SELECT 1;\n", Protocol::Simple),
    ("SELECT 1 AS a \\gset\nSELECT :a;\n", Protocol::Extended),
    ("\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n", Protocol::Prepared),
];

/// The most that the client keeps of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Plays a server that says this to a client, in two pieces; the first byte chooses the script.
pub fn replies(bytes: &[u8]) {
    // The first byte chooses the script, and an empty input has none.
    let Some((choice, said)) = bytes.split_first() else { return };
    let (text, protocol) = SCRIPTS[usize::from(*choice) % SCRIPTS.len()];
    let script = LoadScript {
        name: "s".to_owned(),
        text: text.to_owned(),
        syntax: ScriptSyntax::Current,
        weight: 1,
    };
    let workload = ClientGroup::new("w", String::new(), vec![script], 1, protocol);
    let common = CommonSettings {
        random_seed: 1,
        default_seed: 2,
        statements: false,
        verbose_errors: true,
        debug: false,
        transactions: None,
        keeps_history: false,
        message_bytes_max: MESSAGE_BYTES_MAX,
    };
    let program = Program::new(&workload, &common).expect("a workload");
    let commands = program.scripts.iter();
    let totals = Totals {
        transactions: 0,
        open_loop: false,
        unknown: 0,
        aborted: 0,
        first_errors: FirstErrors::new(),
        standstills: None,
        longest_ns: 0,
        served: LatencyHistogram::new(),
        unserved: LatencyHistogram::new(),
        slowest: None,
        open: Open::default(),
        statements: commands
            .map(|script| vec![Statement::default(); script.script.commands.len()])
            .collect(),
        work: None,
        scripts: Vec::new(),
    };
    let grid = Grid { began: 0, anchor: 0, open: 0, ..Grid::UNDECIDED };
    let mut tally = Tally::new(1_000_000_000, vec![totals]);
    tally.begin(&grid);
    let mut session = Session::new(0, 0, &program, Xoroshiro128::from_seed(7));
    let (mut choose, mut narration, mut out) = (Xoroshiro128::from_seed(8), Vec::new(), Vec::new());
    let mut cx = LaneContext {
        program: &program,
        tally: &mut tally,
        log: None,
        ledger: None,
        history: None,
        narration: &mut narration,
        choose: &mut choose,
        out: &mut out,
        grid,
        clock: &|| 1,
    };
    session.connected();
    session.choose(&mut cx);
    session.begin(&mut cx, 1, 1);
    for piece in said.chunks(said.len() / 2 + 1) {
        if session.input(&mut cx, 1, piece) == Wait::Gone {
            return;
        }
        assert!(session.carry.len() <= MESSAGE_BYTES_MAX.max(said.len()));
    }
}

struct Two([usize; 2]);

impl Workers for Two {
    fn lanes(&self) -> &[usize] {
        &self.0
    }

    fn publish(&self, _: &Grid) {}

    fn lead_ns(&self) -> u64 {
        0
    }

    fn on_loss(&self, _: usize, _: Moment, _: &Loss) -> AfterLoss {
        AfterLoss::GoOn("lost".to_owned())
    }
}

/// Leads a load of two generators that have said this: lines, those of the second behind a line with
/// a `-`.
pub fn reports(text: &str) {
    let (first, second) = text.split_once("\n-\n").unwrap_or((text, ""));
    let script = LoadScript {
        name: "s".to_owned(),
        text: "SELECT 1;\n".to_owned(),
        syntax: ScriptSyntax::Current,
        weight: 1,
    };
    let conninfo = "host=/tmp user=u dbname=d".to_owned();
    let workload = ClientGroup::new("w", conninfo, vec![script], 4, Protocol::Simple);
    let limit = LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms: 1 };
    let mut plan = LoadPlan::new(vec![workload], limit);
    plan.statements = true;
    let (sender, receiver) = sync_channel(1 << 16);
    for (index, text) in [first, second].into_iter().enumerate() {
        let lines: Vec<_> = text.lines().map(|line| Ok(line.to_owned())).collect();
        let mut suspect = Suspect::new(&plan, 1);
        let output = Box::new(lines.into_iter());
        let mut carried = Carried::default();
        if let Err(loss) = listen(output, index, &mut suspect, &mut carried, &sender) {
            let _ = sender.try_send((index, Report::Lost(loss)));
        }
    }
    drop(sender);
    let origin = Instant::now().checked_sub(Duration::from_secs(10)).expect("a booted machine");
    let fleet = Two([1, 1]);
    let control = LoadControl::new();
    if let Err(error) = conductor::conduct(&plan, &fleet, &receiver, &control, origin, &mut |_| ())
    {
        assert!(!error.to_string().is_empty());
    }
}
