//! Kinds of machines: how each of them disturbs one trial after the other.

use stats::Prng;

/// A machine in the middle of a run.
pub(crate) struct Machine {
    kind: Kind,
    prng: Prng,
    /// What the machine drifts by, in logarithms.
    drift: f64,
    trials: usize,
}

/// What disturbs trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Log-normal, 3 %.
    Quiet,
    /// Log-normal, 15 %.
    Noisy,
    /// 3 %, and one trial in ten at 60 % of its speed.
    Outliers,
    /// Two speeds, a quarter apart, each in every other trial on average.
    TwoPeaked,
    /// Two speeds, the slower in one trial of five.
    Skewed,
    /// 3 %, and a level that wanders from trial to trial (first order, 0.9) by 10 %.
    Drifting,
    /// 3 %, and slower by 1 % with every trial.
    Fading,
    /// 3 %, and one trial in seven stalls for most of its window.
    Stalling,
    /// 3 %, and in one trial of twenty a server dies.
    Dying,
}

/// What becomes of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It runs at one level, at so many times the speed of a machine at rest.
    Runs(f64),
    /// It stalls within its window, and over the whole of it has this speed.
    Stalls(f64),
    /// A server dies.
    Dies,
}

impl Kind {
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Quiet,
        Kind::Noisy,
        Kind::Outliers,
        Kind::TwoPeaked,
        Kind::Skewed,
        Kind::Drifting,
        Kind::Fading,
        Kind::Stalling,
        Kind::Dying,
    ];

    /// Whether each trial is disturbed as the one before, independently of it.
    pub(crate) fn is_stationary(self) -> bool {
        !matches!(self, Kind::Drifting | Kind::Fading)
    }

    pub(crate) fn start(self, seed: u64) -> Machine {
        Machine { kind: self, prng: Prng::new(seed), drift: 0.0, trials: 0 }
    }

    /// The median factor of a trial, where there is one.
    pub(crate) fn median(self) -> f64 {
        match self {
            // Of 3 % around 1 with a tenth far below: the median moves by 0.14 standard deviations.
            Kind::Outliers => (-0.03f64 * 0.1397).exp(),
            Kind::TwoPeaked => (-0.125f64).exp(),
            // The faster peak has 80 %: its lower three eighths and all of the slower lie below.
            Kind::Skewed => (-0.02f64 * 0.3186).exp(),
            // The stalled seventh lies below: of the rest, 0.5 − 1/7 lies below as well, 5/12.
            Kind::Stalling => (-0.03f64 * 0.2104).exp(),
            _ => 1.0,
        }
    }
}

impl Machine {
    /// What becomes of the next trial.
    pub(crate) fn trial(&mut self) -> Fate {
        let factor = self.factor();
        match self.kind {
            Kind::Stalling if self.prng.unit() < 1.0 / 7.0 => {
                Fate::Stalls(factor * 0.6 * self.prng.unit())
            }
            Kind::Dying if self.prng.unit() < 0.05 => Fate::Dies,
            _ => Fate::Runs(factor),
        }
    }

    /// By what factor the next trial is faster or slower than it would be on a machine at rest.
    pub(crate) fn factor(&mut self) -> f64 {
        self.trials += 1;
        let slow = |is: bool, by: f64| if is { -by } else { 0.0 };
        let (normal, unit) = (self.normal(), self.prng.unit());
        let log = match self.kind {
            Kind::Quiet | Kind::Stalling | Kind::Dying => 0.03 * normal,
            Kind::Noisy => 0.15 * normal,
            Kind::Outliers => 0.03 * normal + slow(unit < 0.1, 0.5),
            Kind::TwoPeaked => 0.02 * normal + slow(unit < 0.5, 0.25),
            Kind::Skewed => 0.02 * normal + slow(unit < 0.2, 0.25),
            Kind::Drifting => {
                let step = 0.1 * (1.0f64 - 0.9 * 0.9).sqrt() * self.normal();
                self.drift = 0.9 * self.drift + step;
                0.03 * normal + self.drift
            }
            Kind::Fading => 0.03 * normal - 0.01 * self.trials as f64,
        };
        log.exp()
    }

    /// A normal number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.prng.unit()).cos()
    }
}
