//! Work that several connections share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::complaint::Complaint;
use crate::server::Server;

/// Does each job on one of the connections as soon as one is free, in the order of the jobs. What
/// `work` says while it does a job is heard here.
///
/// # Errors
/// That of the first job that fails. Jobs under way are done, no others are begun.
pub(super) fn share_out<J: Sync>(
    jobs: &[J],
    server: &mut Server,
    others: &mut [Server],
    work: impl Fn(&mut Server, &J, &dyn Fn(u64)) -> Result<(), Complaint> + Sync,
    mut hear: impl FnMut(u64),
) -> Result<(), Complaint> {
    let next = AtomicUsize::new(0);
    let (sender, said) = channel();
    let serve = |server: &mut Server, sender: Sender<Result<u64, Complaint>>| {
        // A listener that is gone has heard of another failure.
        let say = |number| drop(sender.send(Ok(number)));
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(complaint) = work(server, job, &say) {
                next.store(jobs.len(), Ordering::Relaxed);
                let _ = sender.send(Err(complaint));
            }
        }
    };
    thread::scope(|scope| {
        let serve = &serve;
        for other in others {
            let sender = sender.clone();
            scope.spawn(move || serve(other, sender));
        }
        scope.spawn(move || serve(server, sender));
        said.into_iter().try_for_each(|said| said.map(&mut hear))
    })
}
