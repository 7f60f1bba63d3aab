//! The servers of `pgrig compare`: those that pgrig has made are restarted between two segments.

use lab::StopMode;
use record::comparison::Renewal;

use crate::contest::{Arena, Ground};
use crate::error::Error;
use crate::side::Side;

/// Both sides, and what becomes of their servers.
pub(crate) struct Servers {
    pub(crate) sides: [Side; 2],
    renewal: Renewal,
    /// Both can read relations into shared buffers.
    can_warm: bool,
    /// B has the files that were A's in the beginning.
    is_exchanged: bool,
}

impl Servers {
    pub(crate) fn new(sides: [Side; 2], renewal: Renewal) -> Servers {
        let can_warm = sides.iter().all(Side::can_warm);
        Servers { sides, renewal, can_warm, is_exchanged: false }
    }

    /// Does the same for both sides at the same time.
    fn both(&mut self, act: impl Fn(&mut Side) -> Result<(), Error> + Sync) -> Result<(), Error> {
        std::thread::scope(|scope| {
            let acting = self.sides.each_mut().map(|side| scope.spawn(|| act(side)));
            acting.map(|one| match one.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
        .into_iter()
        .collect()
    }
}

impl Arena for Servers {
    fn sides(&self) -> [&dyn Ground; 2] {
        self.sides.each_ref().map(|side| side as &dyn Ground)
    }

    fn renewal(&self) -> Renewal {
        self.renewal
    }

    fn renew(&mut self, is_exchanged: bool) -> Result<(), Error> {
        if !self.renewal.restarts() {
            return Ok(());
        }
        self.both(|side| {
            let stopped = side.node().map(|node| node.stop(StopMode::Fast));
            stopped.transpose().map(drop).map_err(|source| side.unfit(source))
        })?;
        if is_exchanged != self.is_exchanged {
            let [a, b] = &mut self.sides;
            if let (Some(a), Some(b)) = (a.node(), b.node()) {
                a.exchange_data(b)?;
                self.is_exchanged = is_exchanged;
            }
        }
        let can_warm = self.can_warm;
        self.both(|side| {
            let started = side.node().map_or(Ok(()), |node| node.start());
            started.map_err(|source| side.unfit(source))?;
            if can_warm { side.warm() } else { Ok(()) }
        })
    }
}
