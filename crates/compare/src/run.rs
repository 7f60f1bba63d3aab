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
use crate::{build, outside};

/// Compares the sides. What was measured before an interruption, or before a side stopped
/// answering, is an answer.
///
/// # Errors
/// [`Error`], when nothing can be said.
pub fn compare(
    request: &Request,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    request.check()?;
    request.common.check()?;
    let began = Instant::now();
    observe(Event::Building { is_outside: request.is_outside() });
    let (mut servers, data) = match request.is_outside() {
        true => outside::open(request, control)?,
        false => build::build(request, control)?,
    };
    let sides = &servers.sides;
    let scale = scale(request, &sides[0]);
    observe(Event::Built {
        versions: [&sides[0].version, &sides[1].version],
        scale: match request.data {
            Data::Pgbench(scale) => Some(scale),
            Data::Script(_) | Data::Found => None,
        },
        data,
        seconds: began.elapsed().as_secs_f64(),
    });
    let subject = Subject {
        sides: [0, 1].map(|index| sides[index].facts(&request.sides[index])),
        data,
        point: None,
        clients: request.workload.clients,
    };
    let workloads = sides.each_ref().map(|side| workload(request, side, scale));
    let lanes = request.workload.lanes;
    measure(subject, &mut servers, workloads, lanes, &request.common, control, observe)
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
        Data::Pgbench(scale) => i64::from(scale),
        Data::Script(_) => given.unwrap_or(1),
        Data::Found => given.or_else(found).unwrap_or(1),
    }
}
