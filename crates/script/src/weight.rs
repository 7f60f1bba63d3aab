//! Scripts with weights: `name@weight`, and the choice between them.

use crate::prng::Xoroshiro128;

/// A script's name as `-b` and `-f` take it, and its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptWeight {
    /// The text before the last `@`.
    pub name: String,
    /// 1 if none is given; 0 takes the script out.
    pub weight: u32,
}

/// Reason why weights cannot be used, in pgbench's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum WeightError {
    /// The text after the `@` is no number; the field begins with the `@`.
    #[error("invalid weight specification: {0}")]
    NotANumber(String),
    #[error("weight specification out of range (0 .. {}): {weight}", i32::MAX)]
    OutOfRange { weight: i64 },
    #[error("total script weight must not be zero")]
    Nothing,
}

impl ScriptWeight {
    /// Read `name` or `name@weight`.
    pub fn parse(text: &str) -> Result<ScriptWeight, WeightError> {
        let Some((name, weight)) = text.rsplit_once('@') else {
            return Ok(ScriptWeight { name: text.to_owned(), weight: 1 });
        };
        let weight: i64 = weight
            .trim_start()
            .parse()
            .map_err(|_| WeightError::NotANumber(format!("@{weight}")))?;
        match u32::try_from(weight) {
            Ok(fits) if fits <= i32::MAX as u32 => {
                Ok(ScriptWeight { name: name.to_owned(), weight: fits })
            }
            _ => Err(WeightError::OutOfRange { weight }),
        }
    }
}

/// The weights of a workload's scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightTable {
    weights: Box<[u32]>,
    total: i64,
}

impl WeightTable {
    /// Weights in the order of the scripts.
    pub fn new(weights: impl IntoIterator<Item = u32>) -> Result<WeightTable, WeightError> {
        let weights: Box<[u32]> = weights.into_iter().collect();
        let total = weights.iter().map(|weight| i64::from(*weight)).sum();
        if total == 0 { Err(WeightError::Nothing) } else { Ok(WeightTable { weights, total }) }
    }

    /// The sum of all weights.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// The index of the script to run next; with a single script nothing is drawn.
    pub fn choose(&self, prng: &mut Xoroshiro128) -> usize {
        if self.weights.len() == 1 {
            return 0;
        }
        let mut left = prng.uniform(0, self.total - 1);
        self.weights
            .iter()
            .position(|weight| {
                left -= i64::from(*weight);
                left < 0
            })
            .expect("what was drawn lies below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_follows_the_last_at() {
        let parse =
            |text: &str| ScriptWeight::parse(text).map(|parsed| (parsed.name, parsed.weight));
        assert_eq!(parse("a.sql"), Ok(("a.sql".to_owned(), 1)));
        assert_eq!(parse("a@b.sql@10"), Ok(("a@b.sql".to_owned(), 10)));
        assert_eq!(parse("a@0"), Ok(("a".to_owned(), 0)));
        let message = |text| ScriptWeight::parse(text).unwrap_err().to_string();
        assert_eq!(message("a@x"), "invalid weight specification: @x");
        assert_eq!(message("a@"), "invalid weight specification: @");
        let range = "weight specification out of range (0 .. 2147483647): ";
        assert_eq!(message("a@-1"), format!("{range}-1"));
        assert_eq!(message("a@2147483648"), format!("{range}2147483648"));
    }

    #[test]
    fn scripts_are_chosen_by_weight_and_zero_never() {
        let weights = WeightTable::new([1, 0, 3]).unwrap();
        let mut prng = Xoroshiro128::from_seed(1);
        let mut chosen = [0_u32; 3];
        for _ in 0..4_000 {
            chosen[weights.choose(&mut prng)] += 1;
        }
        assert_eq!(chosen[1], 0);
        assert!((900..1100).contains(&chosen[0]), "{chosen:?}");
        assert_eq!(WeightTable::new([0, 0]), Err(WeightError::Nothing));
    }
}
