//! The lines of generators, for fuzz targets.

use std::{
    sync::mpsc::sync_channel,
    time::{Duration, Instant},
};

use script::{Protocol, Syntax};

use crate::{
    Control, Limit, Plan, ScriptText, WarmUp, Workload,
    carried::Carried,
    conductor::{self, AfterLoss, Workers},
    foreign::Suspect,
    generators::listen,
    grid::Grid,
    report::{Loss, Report},
};
use record::Moment;

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
    let script = ScriptText {
        name: "s".to_owned(),
        text: "SELECT 1;\n".to_owned(),
        syntax: Syntax::Current,
        weight: 1,
    };
    let conninfo = "host=/tmp user=u dbname=d".to_owned();
    let workload = Workload::new("w", conninfo, vec![script], 4, Protocol::Simple);
    let limit = Limit::Time { warm_up: WarmUp::Fixed(0), window_ms: 1 };
    let mut plan = Plan::new(vec![workload], limit);
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
    let control = Control::new();
    if let Err(error) = conductor::conduct(&plan, &fleet, &receiver, &control, origin, &mut |_| ())
    {
        assert!(!error.to_string().is_empty());
    }
}
