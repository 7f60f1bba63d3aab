//! Calls and times of statements, grouped by fingerprint, whatever source they come from.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::reservoir::{CallSample, ValueRow};
use crate::sql::{QueryText, StatementFingerprint, UnreadableSql};
use crate::treatment::UtilityCommand;

/// Different lengths of lists of one statement that are kept apart.
const VARIANTS_MAX: usize = 64;

/// Places in sources that are remembered for one statement.
const PLACES_MAX: usize = 5;

/// Calls, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTotals {
    /// Executions.
    pub calls: u64,
    /// Time in the server, in milliseconds.
    pub time_ms: f64,
    /// Rows that were returned or changed.
    pub rows: u64,
}

impl CallTotals {
    pub(crate) fn add(&mut self, other: &CallTotals) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time_ms += other.time_ms;
        self.rows = self.rows.saturating_add(other.rows);
    }
}

impl std::iter::Sum for CallTotals {
    fn sum<I: Iterator<Item = CallTotals>>(iter: I) -> CallTotals {
        iter.fold(CallTotals::default(), |mut sum, one| {
            sum.add(&one);
            sum
        })
    }
}

/// The way by which a statement came to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatementProtocol {
    /// As one text, its values in it.
    Simple,
    /// Parsed for each execution.
    Extended,
    /// Under a name, parsed once.
    Prepared,
}

/// A statement with all its calls.
#[derive(Clone, Debug)]
pub struct GroupedStatement {
    /// The key.
    pub key: StatementFingerprint,
    /// The texts, which differ in the lengths of lists.
    pub variants: Vec<TextVariant>,
    /// All calls.
    pub amount: CallTotals,
    /// True if the source counts no rows for it.
    pub has_unknown_rows: bool,
    /// Calls by protocol, where the source shows it.
    pub protocols: BTreeMap<StatementProtocol, u64>,
    /// The first places in the sources.
    pub places: Vec<String>,
}

/// A text of a statement.
#[derive(Clone, Debug)]
pub struct TextVariant {
    /// The normalised text.
    pub text: String,
    /// The calls.
    pub calls: u64,
    /// The lists whose length is not known.
    pub squashed: Vec<u32>,
    /// True for CALL.
    pub is_call: bool,
    /// The constants that the source has left in the text: `date_trunc('day', d)` in GROUP BY.
    pub constants: Vec<(u32, String)>,
    /// Values of its calls, where the source has them and the user wants them.
    pub values: CallSample,
}

/// Statements of one transaction, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionShape {
    /// Statement and variant of each, as indices of the tally.
    pub statements: Vec<(usize, usize)>,
    /// How often it ran.
    pub count: u64,
}

/// The text of a call and the way it came.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOrigin<'a> {
    /// The place in the source.
    pub place: &'a str,
    /// The protocol, where it is known.
    pub protocol: Option<StatementProtocol>,
    /// True if the texts of the source are normalised, so that their literals are part of the statement.
    pub is_normalised: bool,
}

/// All that sources say of statements.
#[derive(Debug, Default)]
pub struct StatementTally {
    /// The statements that a load may run.
    pub statements: Vec<GroupedStatement>,
    by_key: HashMap<StatementFingerprint, usize>,
    /// Transactions of several statements.
    pub transactions: Vec<TransactionShape>,
    /// BEGIN, COMMIT and their relatives.
    pub transaction_control: CallTotals,
    /// Commands that no script has.
    pub left_out: BTreeMap<UtilityCommand, CallTotals>,
    /// Texts that could not be read.
    pub unreadable: BTreeMap<UnreadableSql, CallTotals>,
    /// Statements inside functions, whose time is counted in their callers as well.
    pub nested: CallTotals,
    /// Facts about the sources that a reader of the answer must know.
    pub notes: BTreeSet<String>,
    /// The seconds that the calls were spread over, where known.
    pub seconds: Option<f64>,
}

impl StatementTally {
    /// Adds calls of a statement; its index and that of its text.
    pub fn add(
        &mut self,
        query: QueryText,
        amount: &CallTotals,
        origin: CallOrigin<'_>,
    ) -> (usize, usize) {
        let next = self.statements.len();
        let index = *self.by_key.entry(query.key).or_insert(next);
        if index == next {
            self.statements.push(GroupedStatement {
                key: query.key,
                variants: Vec::new(),
                amount: CallTotals::default(),
                has_unknown_rows: false,
                protocols: BTreeMap::new(),
                places: Vec::new(),
            });
        }
        let statement = &mut self.statements[index];
        let found = statement.variants.iter().position(|variant| variant.text == query.text);
        let variant = found.unwrap_or_else(|| {
            // A statement with hundreds of lengths goes on with those that came first.
            if statement.variants.len() >= VARIANTS_MAX {
                return VARIANTS_MAX - 1;
            }
            let constants = query.constants.iter().filter(|_| origin.is_normalised);
            statement.variants.push(TextVariant {
                text: query.text.clone(),
                calls: 0,
                squashed: query.squashed.clone(),
                is_call: query.is_call,
                constants: constants
                    .filter_map(|one| Some((one.parameter, one.value.clone()?)))
                    .collect(),
                values: CallSample::default(),
            });
            statement.variants.len() - 1
        });
        if query.is_prepared && origin.is_normalised {
            statement.has_unknown_rows = true;
        }
        let numbered = query.is_numbered_by_client.then_some(StatementProtocol::Extended);
        let prepared = query.is_prepared.then_some(StatementProtocol::Prepared);
        self.count(
            (index, variant),
            amount,
            CallOrigin { protocol: origin.protocol.or(prepared).or(numbered), ..origin },
        );
        (index, variant)
    }

    /// Adds calls of a statement that is known.
    pub fn count(&mut self, at: (usize, usize), amount: &CallTotals, origin: CallOrigin<'_>) {
        let statement = &mut self.statements[at.0];
        statement.amount.add(amount);
        statement.variants[at.1].calls =
            statement.variants[at.1].calls.saturating_add(amount.calls);
        if let Some(protocol) = origin.protocol {
            *statement.protocols.entry(protocol).or_default() += amount.calls;
        }
        if statement.places.len() < PLACES_MAX {
            statement.places.push(origin.place.to_owned());
        }
    }

    /// Keeps the values of one call.
    pub fn keep(&mut self, at: (usize, usize), values: ValueRow) {
        self.statements[at.0].variants[at.1].values.offer(values);
    }

    /// Everything that top-level statements took.
    pub fn total(&self) -> CallTotals {
        let statements =
            self.statements.iter().map(|statement| statement.amount).sum::<CallTotals>();
        let left_out = self.left_out.values().copied().sum::<CallTotals>();
        let unreadable = self.unreadable.values().copied().sum::<CallTotals>();
        [statements, left_out, unreadable, self.transaction_control].into_iter().sum()
    }
}
