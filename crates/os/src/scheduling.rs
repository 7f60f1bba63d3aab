//! How the kernel's scheduler treats a thread.

use std::marker::PhantomData;

/// While this lives, the thread takes a core from nobody when it is woken: it goes on at the next
/// tick (`SCHED_BATCH`, sched(7)). Dropping it makes the thread an ordinary one again.
///
/// For work whose moments do not matter, beside processes whose time does.
#[derive(Debug)]
pub struct Patience {
    was_changed: bool,
    /// The policy is the thread's own, so this must end there.
    _of_this_thread: PhantomData<*const ()>,
}

impl Patience {
    /// Makes this thread patient; one with a policy that somebody else chose keeps it.
    pub fn begin() -> Self {
        // SAFETY: 0 is the calling thread.
        let is_ordinary = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        Self { was_changed: is_ordinary && set(libc::SCHED_BATCH), _of_this_thread: PhantomData }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if self.was_changed {
            set(libc::SCHED_OTHER);
        }
    }
}

/// Whether the kernel took it; where it does not, everything works as before.
fn set(policy: libc::c_int) -> bool {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_patient_only_as_long_as_it_wants() {
        // SAFETY: 0 is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let patience = Patience::begin();
        if before == libc::SCHED_OTHER {
            assert_eq!(policy(), libc::SCHED_BATCH);
        }
        drop(patience);
        assert_eq!(policy(), before);
    }
}
