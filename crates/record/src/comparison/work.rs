//! The work that both sides did with the same statements: compared before any speed is.

use serde::{Deserialize, Serialize};

/// The work of two sides. A side that does something else is not faster or slower: it is no comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkComparison {
    /// Transactions that each side ran before the load, one after another, from the same data and with the same
    /// draws: their tags and their rows were compared one by one.
    pub rehearsed: u64,
    /// Tables that these transactions had changed, whose changed rows were compared afterwards.
    pub tables: usize,
    /// Answers of each side under load whose tags were compared statement by statement; the fewer of both.
    pub answers: u64,
    /// What B did otherwise than A, in sentences; none as a rule.
    pub differences: Vec<String>,
    /// What was not compared, or may lawfully differ, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<String>,
}

impl WorkComparison {
    /// True if something was compared.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.rehearsed > 0 || self.answers > 0
    }

    /// What was compared, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if self.rehearsed > 0 {
            let transactions = terms::counted(self.rehearsed, "transaction");
            let tables = match self.tables {
                0 => String::new(),
                tables => {
                    let tables = terms::counted(tables as u64, "table");
                    format!(", and the changed rows of {tables} after them")
                }
            };
            parts.push(format!("the answers of {transactions} run one by one{tables}"));
        }
        if self.answers > 0 {
            let answers = terms::counted(self.answers, "answer");
            parts.push(format!("the tags of {answers} under load"));
        }
        match parts.is_empty() {
            true => "nothing was compared".to_owned(),
            false => parts.join("; "),
        }
    }
}
