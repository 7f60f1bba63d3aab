//! The time that states take, by what is done with them.

use std::fmt;
use std::time::{Duration, Instant};

/// A part of the work on a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExplorationPhase {
    /// The last state's server is killed, and its disk is switched off.
    Off,
    /// The state's content is put together.
    State,
    /// The disk is mounted, and the server recovers.
    Recovery,
    /// The rows are compared with the ledger.
    Ledger,
    /// amcheck looks at indexes.
    Indexes,
    /// amcheck looks at tables.
    Tables,
    /// Every row is read by heap and by index.
    Rows,
}

/// Time spent in each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ExplorationTime([Duration; ExplorationPhase::ALL.len()]);

impl ExplorationPhase {
    const ALL: [ExplorationPhase; 7] = [
        ExplorationPhase::Off,
        ExplorationPhase::State,
        ExplorationPhase::Recovery,
        ExplorationPhase::Ledger,
        ExplorationPhase::Indexes,
        ExplorationPhase::Tables,
        ExplorationPhase::Rows,
    ];

    fn words(self) -> &'static str {
        match self {
            ExplorationPhase::Off => "switching off",
            ExplorationPhase::State => "assembling the state",
            ExplorationPhase::Recovery => "mounting and recovering",
            ExplorationPhase::Ledger => "the ledger",
            ExplorationPhase::Indexes => "amcheck of indexes",
            ExplorationPhase::Tables => "amcheck of tables",
            ExplorationPhase::Rows => "reading by heap and by index",
        }
    }
}

impl ExplorationTime {
    /// Does something, and counts its time.
    pub(super) fn time<T>(&mut self, phase: ExplorationPhase, act: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = act();
        self.0[phase as usize] += began.elapsed();
        done
    }

    pub(super) fn add(&mut self, other: ExplorationTime) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, one)| *sum += one);
    }

    /// The mean over so many states.
    pub(super) fn each(mut self, states: usize) -> ExplorationTime {
        self.0.iter_mut().for_each(|one| *one /= states.max(1) as u32);
        self
    }
}

impl fmt::Display for ExplorationTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, phase) in ExplorationPhase::ALL.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} ms", phase.words(), self.0[phase as usize].as_millis())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_phase_is_its_own() {
        let mut spent = ExplorationTime::default();
        let ms = Duration::from_millis;
        spent.time(ExplorationPhase::Ledger, || std::thread::sleep(ms(4)));
        assert!(spent.0[ExplorationPhase::Ledger as usize] >= ms(4));
        assert!(spent.0[ExplorationPhase::Rows as usize].is_zero());
        let mut twice = ExplorationTime::default();
        twice.0[ExplorationPhase::Rows as usize] = ms(3);
        twice.add(twice);
        assert!(twice.each(2).to_string().ends_with("reading by heap and by index 3 ms"));
    }
}
