//! Slow transactions by length: each length counts for the time that its transactions took.
//!
//! A look takes a CPU from the load for a moment, and so makes short transactions slow, which it then
//! finds: more looks fall into them than by chance. The time of all transactions of a length is known
//! exactly, from the clients. Looks tell only its shares (post-stratification).

use std::collections::BTreeMap;

use crate::{ActivityLook, SlowTransaction, overlap};

/// With fewer looks than this into transactions of a length, these are taken together with longer ones.
const LOOKS_MIN: u64 = 8;

/// Transactions of about the same length.
#[derive(Clone, Copy, Default)]
struct Stratum {
    looks: u64,
    looked_s: f64,
    served_s: f64,
}

impl Stratum {
    fn add(&mut self, other: Stratum) {
        self.looks += other.looks;
        self.looked_s += other.looked_s;
        self.served_s += other.served_s;
    }

    fn factor(self) -> f64 {
        if self.looked_s > 0.0 { self.served_s / self.looked_s } else { 1.0 }
    }
}

/// The factors of looks, by the length of the transaction that they see.
pub(crate) struct LengthStrata {
    factors: BTreeMap<u32, f64>,
}

impl LengthStrata {
    /// The strata of transactions and looks, each of which stands for so many seconds.
    pub(crate) fn new(
        slow: &[SlowTransaction],
        looks: &[ActivityLook],
        weights: &[f64],
    ) -> LengthStrata {
        let mut octaves: BTreeMap<u32, Stratum> = BTreeMap::new();
        for one in slow {
            let span = overlap::within(looks, one.began, one.ended);
            octaves.entry(octave(one)).or_default().add(Stratum {
                looks: span.len() as u64,
                looked_s: weights[span].iter().sum(),
                served_s: served_ns(one) as f64 / 1e9,
            });
        }
        let mut groups: Vec<(Vec<u32>, Stratum)> = Vec::new();
        for (octave, stratum) in octaves.into_iter().rev() {
            match groups.last_mut().filter(|(_, group)| group.looks < LOOKS_MIN) {
                Some((members, group)) => {
                    members.push(octave);
                    group.add(stratum);
                }
                None => groups.push((vec![octave], stratum)),
            }
        }
        // The shortest ones may be too few.
        if groups.len() > 1 && groups.last().is_some_and(|(_, group)| group.looks < LOOKS_MIN) {
            let few = groups.pop();
            if let (Some((members, group)), Some(longer)) = (few, groups.last_mut()) {
                longer.0.extend(members);
                longer.1.add(group);
            }
        }
        let factors = groups.into_iter().flat_map(|(members, group)| {
            let factor = group.factor();
            members.into_iter().map(move |octave| (octave, factor))
        });
        LengthStrata { factors: factors.collect() }
    }

    /// The factor of looks into this transaction.
    pub(crate) fn factor(&self, slow: &SlowTransaction) -> f64 {
        self.factors.get(&octave(slow)).copied().unwrap_or(1.0)
    }
}

fn served_ns(slow: &SlowTransaction) -> u64 {
    slow.ended.saturating_sub(slow.began)
}

/// Lengths between two powers of two.
fn octave(slow: &SlowTransaction) -> u32 {
    u64::BITS - served_ns(slow).leading_zeros()
}
