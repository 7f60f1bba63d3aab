//! A comparison by pgbench's options, from two servers to an answer.

use std::time::Instant;

use load::{Control, Workload};
use record::Comparison;

use crate::contest::Ground;
use crate::error::Error;
use crate::event::Event;
use crate::measure::{Subject, measure};
use crate::request::Request;
use crate::side::{Data, Side};
use crate::{build, outside, settings};

/// Makes sure that a comparison could begin: that its options fit together, and that its files, programs and
/// settings are there. Nothing is built, and no server is connected to.
pub fn check(request: &Request) -> Result<(), Error> {
    request.check()?;
    request.common.check()
}

/// Compares the sides. What was measured before an interruption, or before a side stopped
/// answering, is an answer.
pub fn compare(
    request: &Request,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    check(request)?;
    let began = Instant::now();
    let outside = request.outside();
    observe(Event::Building { outside });
    let memory = lab::machine::Machine::here().memory;
    let of_pgrig = settings::of_pgrig(request.workload.clients, memory.total_bytes);
    let (mut servers, data) = match outside {
        0 => build::build(request, &of_pgrig, control)?,
        1 => outside::mixed(request, &of_pgrig, control)?,
        _ => outside::open(request, control)?,
    };
    let sides = &servers.sides;
    let scale = scale(request, &sides[0]);
    observe(Event::Built {
        versions: [&sides[0].version, &sides[1].version],
        scale: match request.data {
            Data::Pgbench(scale) => Some(scale),
            Data::File(_) => None,
        },
        data,
        seconds: began.elapsed().as_secs_f64(),
    });
    let subject = Subject {
        sides: [0, 1].map(|index| sides[index].facts(&request.sides[index])),
        data,
        point: None,
        workload: request.words.clone(),
        set: set(request, of_pgrig, outside),
        clients: request.workload.clients,
    };
    let workloads = sides.each_ref().map(|side| vec![workload(request, side, scale)]);
    let lanes = request.workload.lanes;
    measure(subject, &mut servers, workloads, lanes, &request.common, control, observe)
}

/// The settings of pgrig's own that hold on the servers that it has made, as the user has changed none of
/// them.
fn set(
    request: &Request,
    of_pgrig: Vec<(String, String)>,
    outside: usize,
) -> Vec<(String, String)> {
    let is_changed = |name: &str| {
        let mut settings = request.sides.iter().flat_map(|side| &side.settings);
        settings.any(|(own, _)| own.eq_ignore_ascii_case(name))
    };
    match outside {
        2 => Vec::new(),
        _ => of_pgrig.into_iter().filter(|(name, _)| !is_changed(name)).collect(),
    }
}

fn workload(request: &Request, side: &Side, scale: i64) -> Workload {
    let mut workload = pgbench::workload(&request.workload, side.conninfo.clone(), scale);
    side.name.clone_into(&mut workload.name);
    workload.session.clone_from(&side.session);
    workload
}

/// The scale of pgbench's tables, which is a variable of scripts.
fn scale(request: &Request, side: &Side) -> i64 {
    let given = request.workload.scale.map(i64::from);
    let found = || -> Option<i64> {
        let row = side.connect().ok()?.query_one("SELECT count(*) FROM pgbench_branches", &[]);
        Some(row.ok()?.get(0))
    };
    match request.data {
        _ if request.no_init => given.or_else(found).unwrap_or(1),
        Data::Pgbench(scale) => i64::from(scale),
        Data::File(_) => given.unwrap_or(1),
    }
}
