//! The set of schedules that may be drawn.

/// A fault that may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawableFault {
    /// The name.
    pub name: String,
    /// Whom it may be done to.
    pub victims: Vec<FaultVictim>,
    /// Shortest and longest time until it is ended, in milliseconds; none for one that is over at once.
    pub length_ms: Option<(u64, u64)>,
}

/// The one that a fault is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultVictim {
    /// The name, or the words for its role.
    pub name: String,
    /// True if it is found at the moment of the fault, by its role then.
    pub is_role: bool,
}

/// Everything that may be drawn. Moments are milliseconds since the window of a trial opened.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSpace {
    /// The faults.
    pub faults: Vec<DrawableFault>,
    /// Fewest and most faults of one schedule.
    pub steps: (usize, usize),
    /// Shortest and longest time between two faults: from the end of the one before, or from its beginning where
    /// both overlap.
    pub gap_ms: (u64, u64),
    /// Share of the faults, 0 to 1, that begin while the one before lasts.
    pub overlap: f64,
    /// The earliest moment of a fault.
    pub first_ms: u64,
    /// The moment at which the last fault must be over: what comes after it is for healing.
    pub last_ms: u64,
}

impl FaultSpace {
    /// Every fault with each of its victims, in the order of the faults.
    pub fn cells(&self) -> Vec<(usize, usize)> {
        let of = |(fault, one): (usize, &DrawableFault)| {
            (0..one.victims.len()).map(move |victim| (fault, victim)).collect::<Vec<_>>()
        };
        self.faults.iter().enumerate().flat_map(of).collect()
    }

    /// The victim of a cell.
    pub(crate) fn victim(&self, fault: usize, victim: usize) -> &FaultVictim {
        &self.faults[fault].victims[victim]
    }

    /// True if two cells have the same victim by its name: one fault at a time is done to it.
    pub(crate) fn is_one_victim(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        let (one, other) = (self.victim(one.0, one.1), self.victim(other.0, other.1));
        !one.is_role && one == other
    }
}
