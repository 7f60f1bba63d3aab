//! The part of the tail that is due to work in the background.
//!
//! A checkpoint has no wait event of its own: while it runs, flushes and reads take longer. Its part
//! of a cause is the excess, as in epidemiology: what there was while it ran, less what as much time
//! without it had. Where a checkpoint is always under way, as with the default
//! `checkpoint_completion_target`, the time in which it flushes files is compared with the time in
//! which it writes them. Time with autovacuum is compared with time with autovacuum, so that neither
//! is blamed for the other.

/// The state of a checkpoint at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checkpoint {
    /// None is under way.
    None,
    /// One is under way, and flushes no file.
    Writes,
    /// One flushes files.
    Flushes,
}

/// The server's work in the background at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackgroundWork {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) autovacuum: bool,
}

/// Seconds by the state of a checkpoint, and by whether autovacuum was at work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seconds([[f64; 3]; 2]);

/// Seconds of a tail that are due to work in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BackgroundSeconds {
    pub(crate) checkpoint: f64,
    pub(crate) autovacuum: f64,
}

/// Seconds of a tail, and the length of the time in which they passed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Passed {
    tail: f64,
    time: f64,
}

impl Seconds {
    pub(crate) fn add(&mut self, beside: BackgroundWork, seconds: f64) {
        self.0[usize::from(beside.autovacuum)][beside.checkpoint as usize] += seconds;
    }

    pub(crate) fn add_all(&mut self, other: &Seconds) {
        for (own, other) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *own += other;
        }
    }

    pub(crate) fn sum(&self) -> f64 {
        self.0.iter().flatten().sum()
    }
}

/// The parts of `tail` that are due to a checkpoint and to autovacuum. `time` is the time of all looks.
pub(crate) fn due(tail: &Seconds, time: &Seconds) -> BackgroundSeconds {
    let passed = |autovacuum: usize, state: Checkpoint| Passed {
        tail: tail.0[autovacuum][state as usize],
        time: time.0[autovacuum][state as usize],
    };
    let mut due = BackgroundSeconds::default();
    let mut rest = [Passed::default(); 2];
    for (autovacuum, rest) in rest.iter_mut().enumerate() {
        let [none, writes, flushes] = [Checkpoint::None, Checkpoint::Writes, Checkpoint::Flushes]
            .map(|state| passed(autovacuum, state));
        let during = writes.and(flushes);
        // Without a comparison among its own kind, the other kind is one.
        let otherwise = [none, passed(1 - autovacuum, Checkpoint::None)];
        let comparison = otherwise.into_iter().find(|otherwise| otherwise.compares_with(during));
        let checkpoint = match comparison {
            Some(otherwise) => excess(during, otherwise),
            None => excess(flushes, writes),
        };
        due.checkpoint += checkpoint;
        *rest = none.and(during);
        rest.tail -= checkpoint;
    }
    due.autovacuum = excess(rest[1], rest[0]);
    due
}

impl Passed {
    fn and(self, other: Passed) -> Passed {
        Passed { tail: self.tail + other.tail, time: self.time + other.time }
    }

    /// True if this is enough time to say what the same time has without the work.
    fn compares_with(self, during: Passed) -> bool {
        self.time > 0.0 && self.time >= OTHERWISE_MIN * (self.time + during.time)
    }
}

/// Share of the time that must be without the work: less is no comparison.
const OTHERWISE_MIN: f64 = 0.1;

/// Seconds of the tail during the work that are more than the same time has otherwise.
fn excess(during: Passed, otherwise: Passed) -> f64 {
    if during.time <= 0.0 || !otherwise.compares_with(during) {
        return 0.0;
    }
    (during.tail - otherwise.tail / otherwise.time * during.time).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_is_what_the_same_time_has_not_otherwise() {
        let check = |during: (f64, f64), otherwise: (f64, f64), expected: f64| {
            let [during, otherwise] = [during, otherwise].map(|(tail, time)| Passed { tail, time });
            assert!((excess(during, otherwise) - expected).abs() < 1e-9, "{during:?}");
        };
        check((8.0, 10.0), (0.0, 20.0), 8.0);
        check((8.0, 10.0), (16.0, 20.0), 0.0);
        check((8.0, 10.0), (4.0, 20.0), 6.0);
        check((1.0, 10.0), (4.0, 20.0), 0.0);
        check((8.0, 10.0), (0.0, 0.5), 0.0);
        check((0.0, 0.0), (4.0, 20.0), 0.0);
    }

    #[test]
    fn like_is_compared_with_like() {
        // In each row: no checkpoint, one that writes, one that flushes.
        let check = |tail: [[f64; 3]; 2], time: [[f64; 3]; 2], expected: [f64; 2]| {
            let BackgroundSeconds { checkpoint, autovacuum } = due(&Seconds(tail), &Seconds(time));
            let found = [checkpoint, autovacuum];
            let is_same = found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9);
            assert!(is_same, "{tail:?} in {time:?}: {found:?}");
        };
        let none = [0.0; 3];
        check([[1.0, 1.0, 4.0], none], [[10.0, 5.0, 5.0], none], [4.0, 0.0]);
        // Always under way: its flushes are compared with its writes.
        check([[0.0, 2.0, 6.0], none], [[0.0, 20.0, 2.0], none], [5.8, 0.0]);
        check([[0.0, 2.0, 0.2], none], [[0.0, 20.0, 2.0], none], [0.0, 0.0]);
        // Autovacuum is always at work: the checkpoint is told from it all the same.
        check([none, [1.0, 0.0, 6.0]], [none, [10.0, 0.0, 10.0]], [5.0, 0.0]);
        // Autovacuum slows everything down, and a checkpoint is innocent: it began within it.
        check(
            [[1.0, 0.0, 0.0], [9.0, 9.0, 0.0]],
            [[10.0, 0.0, 0.0], [10.0, 10.0, 0.0]],
            [0.0, 16.0],
        );
        // Both at the same time, and never one alone: the first one is blamed.
        check([[1.0, 0.0, 0.0], [0.0, 0.0, 9.0]], [[10.0, 0.0, 0.0], [0.0, 0.0, 10.0]], [8.0, 0.0]);
    }
}
