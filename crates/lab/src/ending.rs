//! The labs of this process, and their end when the user asks for it.
//!
//! A wait in a lab is a wait for one of its processes or servers. When the labs end, each such wait
//! ends with an error, so that none of them has to look for the user's interruption itself.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::Error;

/// Something that can be told to end while others wait for it.
pub(crate) trait Endable: Send + Sync {
    /// Ends it without waiting.
    fn end_soon(&self);
    /// Has its PostgreSQL servers killed, without waiting; the lab stays.
    fn kill_servers_soon(&self);
}

static LABS: Mutex<Labs> = Mutex::new(Labs { all: Vec::new(), are_ended: false });

struct Labs {
    all: Vec<Weak<dyn Endable>>,
    are_ended: bool,
}

/// Ends every lab of this process, on this machine and on hosts, and refuses new ones. Servers are
/// killed and directories are removed; threads that wait for them get an error.
pub fn end_labs() {
    let mut labs = LABS.lock().unwrap_or_else(PoisonError::into_inner);
    labs.are_ended = true;
    let all = std::mem::take(&mut labs.all);
    // The last owner may be this one, and dropping a lab takes the lock.
    drop(labs);
    for lab in all.iter().filter_map(Weak::upgrade) {
        lab.end_soon();
    }
}

pub(crate) fn are_ended() -> bool {
    LABS.lock().unwrap_or_else(PoisonError::into_inner).are_ended
}

/// Kills every PostgreSQL server of this process's labs, on this machine and on hosts, so that
/// threads that wait for an answer of one get an error. The labs stay.
pub fn kill_servers() {
    let labs = LABS.lock().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<_> = labs.all.iter().filter_map(Weak::upgrade).collect();
    // The last owner may be this one, and dropping a lab takes the lock.
    drop(labs);
    for lab in all {
        lab.kill_servers_soon();
    }
}

/// Has [`end_labs`] end this one as well.
pub(crate) fn register(lab: &Arc<impl Endable + 'static>) -> Result<(), Error> {
    let mut labs = LABS.lock().unwrap_or_else(PoisonError::into_inner);
    if labs.are_ended {
        let (doing, node) = ("opening", "a lab".to_owned());
        return Err(Error::Process { doing, node, source: io::ErrorKind::Interrupted.into() });
    }
    labs.all.retain(|lab| lab.strong_count() > 0);
    let lab: Weak<dyn Endable> = Arc::downgrade(lab) as Weak<dyn Endable>;
    labs.all.push(lab);
    Ok(())
}
