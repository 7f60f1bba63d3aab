//! The kernel's interfaces for sending and receiving: the same load by each.

use load::{LoadLimit, LoadPlan};
use record::SocketIo;

use crate::support::{Server, plan, run, workload};

/// Statements that no socket takes at once, results that fill many buffers, and many clients.
#[test]
fn large_statements_and_results_arrive_whole_by_each_interface() {
    let server = Server::shared();
    let large = "x".repeat(1_000_000);
    let script = format!(
        "SELECT length('{large}') AS sent \\gset\n\\set ok 1 / (:sent - 999999)\n\
         SELECT repeat('y', 3000000);\nSELECT 1;\n"
    );
    let permitted = os::ring::IoRing::new(1).is_ok();
    let best = if permitted { SocketIo::IoUring } else { SocketIo::Epoll };
    for (io_uring, io) in [(false, SocketIo::Epoll), (true, best)] {
        let workload = workload(&server.conninfo(), &script, 12);
        let plan = LoadPlan { io_uring, ..plan(workload, LoadLimit::Transactions(5)) };
        let outcome = run(&plan).expect("a load");
        let counts = &outcome.workloads[0].counts_total;
        assert_eq!((counts.transactions, counts.failed()), (60, 0), "{io:?}");
        assert_eq!(outcome.generator.io, Some(io));
    }
}
