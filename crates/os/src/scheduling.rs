//! Scheduling policy of a thread.

use std::marker::PhantomData;

/// While this lives, the thread takes no core from another when it is woken: it goes on at the next
/// tick (`SCHED_BATCH`, sched(7)). Dropping it makes the thread an ordinary one again.
///
/// For work whose moments do not matter, beside processes whose time does.
#[derive(Debug)]
pub struct BatchScheduling {
    was_changed: bool,
    /// The policy is the thread's own, so this must end there.
    _of_this_thread: PhantomData<*const ()>,
}

impl BatchScheduling {
    /// Makes this thread patient; one with a policy of its own keeps it.
    pub fn begin() -> Self {
        let was_changed = policy() == libc::SCHED_OTHER && set(libc::SCHED_BATCH);
        Self { was_changed, _of_this_thread: PhantomData }
    }
}

impl Drop for BatchScheduling {
    fn drop(&mut self) {
        if self.was_changed {
            set(libc::SCHED_OTHER);
        }
    }
}

/// Lets this thread go on as soon as it is woken, before ordinary ones (`SCHED_RR`, sched(7)), until
/// it ends. False where that is not permitted.
///
/// For a sampler that uses next to nothing: one that waits for a CPU beside those that it samples
/// looks when a CPU has come free, which is never when all of them are at work.
pub fn go_first() -> bool {
    policy() == libc::SCHED_OTHER && set_with(libc::SCHED_RR, 1)
}

// Both are system calls without the C library: musl's functions of these names only report ENOSYS.

/// The calling thread's policy; negative where the kernel does not tell.
fn policy() -> libc::c_int {
    // SAFETY: 0 is the calling thread.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    libc::c_int::try_from(policy).unwrap_or(-1)
}

/// True if the kernel took it; if it did not, everything works as before.
fn set(policy: libc::c_int) -> bool {
    set_with(policy, 0)
}

fn set_with(policy: libc::c_int, priority: libc::c_int) -> bool {
    // The kernel's struct sched_param is one int.
    // SAFETY: 0 is the calling thread, and the parameter outlives the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_patient_only_as_long_as_it_wants() {
        let before = policy();
        let patience = BatchScheduling::begin();
        if before == libc::SCHED_OTHER {
            assert_eq!(policy(), libc::SCHED_BATCH);
        }
        drop(patience);
        assert_eq!(policy(), before);
    }
}
