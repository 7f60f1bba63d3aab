//! `\setrow VAR[, VAR]... {query FILE.sql | file FILE.csv} [uniform | weighted COLUMN | zipfian PARAMETER]`:
//! a command of pgrig's own, which sets variables to the columns of a row that it draws.

use std::path::Path;

use crate::hint::did_you_mean;
use crate::names::{VariableNames, VariableSlot, is_variable_name};
use crate::number;
use crate::prng::Xoroshiro128;
use crate::row_table::RowTable;
use crate::sql;
use crate::variables::Variables;

/// The command.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRow {
    /// The variables that it sets, in order.
    pub targets: Box<[VariableSlot]>,
    /// Their names.
    pub names: Box<[Box<str>]>,
    /// The rows.
    pub source: RowSource,
    /// The distribution by which one of them is drawn.
    pub draw: RowDraw,
}

/// The rows that a command draws from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowSource {
    /// What the file holds.
    pub kind: RowSourceKind,
    /// The path, from where the script's own path is counted.
    pub path: String,
}

/// Content of a file that rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowSourceKind {
    /// A query, which is run once.
    Query,
    /// The rows as CSV, with a line of their columns' names.
    File,
}

/// The distribution by which rows are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum RowDraw {
    /// All rows alike.
    Uniform,
    /// By the weight in this column.
    Weighted(Box<str>),
    /// The first row most often; the parameter is that of `random_zipfian`.
    Zipfian(f64),
}

/// A mistake in the command's words, and what helps.
pub(crate) struct SetRowMistake {
    pub(crate) message: &'static str,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
}

const FORM: &str = "\\setrow VAR[, VAR]... {query FILE.sql | file FILE.csv} \
                    [uniform | weighted COLUMN | zipfian PARAMETER]";

impl SetRow {
    /// Reads the words behind the command of a script of this name.
    pub(crate) fn parse(
        words: &[&[u8]],
        script: &str,
        names: &mut VariableNames,
    ) -> Result<SetRow, SetRowMistake> {
        let mistake = |message, word: Option<&str>| SetRowMistake {
            message,
            detail: word.map(str::to_owned),
            hint: Some(FORM.to_owned()),
        };
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let mut words = words.iter().map(|word| &**word).peekable();
        let mut targets = Vec::new();
        // A comma may stand before, behind or between names, with blanks or without.
        let mut is_listed = true;
        while let Some(word) = words.next_if(|word| is_listed || word.starts_with(',')) {
            for (index, name) in word.split(',').enumerate() {
                if index > 0 {
                    if is_listed {
                        return Err(mistake("missing variable before a comma", None));
                    }
                    is_listed = true;
                }
                if name.is_empty() {
                    continue;
                }
                if !is_listed {
                    return Err(mistake("missing comma between variables", Some(name)));
                }
                if !is_variable_name(name) {
                    return Err(mistake("invalid variable name", Some(name)));
                }
                if targets.contains(&name) {
                    return Err(mistake("the same variable twice", Some(name)));
                }
                targets.push(name);
                is_listed = false;
            }
        }
        if targets.is_empty() || is_listed {
            return Err(mistake("missing variable", None));
        }
        let is = |word: &str, keyword: &str| word.eq_ignore_ascii_case(keyword);
        let kind = match words.next() {
            Some(word) if is(word, "query") => RowSourceKind::Query,
            Some(word) if is(word, "file") => RowSourceKind::File,
            Some(word) => return Err(mistake("expected \"query\" or \"file\"", Some(word))),
            None => return Err(mistake("missing \"query\" or \"file\"", None)),
        };
        let Some(path) = words.next() else { return Err(mistake("missing file name", None)) };
        let draw = match words.next() {
            None => RowDraw::Uniform,
            Some(word) if is(word, "uniform") => RowDraw::Uniform,
            Some(word) if is(word, "weighted") => match words.next() {
                Some(column) => RowDraw::Weighted(column.into()),
                None => return Err(mistake("missing column of weights", None)),
            },
            Some(word) if is(word, "zipfian") => match words.next() {
                Some(word) => match number::parse_double(word.as_bytes()) {
                    Some(parameter) if (1.001..=1000.0).contains(&parameter) => {
                        RowDraw::Zipfian(parameter)
                    }
                    _ => {
                        let message = "zipfian parameter must be a number in range [1.001, 1000]";
                        return Err(mistake(message, Some(word)));
                    }
                },
                None => return Err(mistake("missing distribution parameter", None)),
            },
            Some(word) => {
                let hint = did_you_mean(word, ["uniform", "weighted", "zipfian"]);
                let mut wrong = mistake("unexpected distribution", Some(word));
                wrong.hint = hint.or(wrong.hint);
                return Err(wrong);
            }
        };
        if let Some(surplus) = words.next() {
            return Err(mistake("too many arguments", Some(surplus)));
        }
        let directory = Path::new(script).parent().unwrap_or(Path::new(""));
        Ok(SetRow {
            targets: targets.iter().map(|name| names.intern(name)).collect(),
            names: targets.into_iter().map(Into::into).collect(),
            source: RowSource { kind, path: directory.join(path).to_string_lossy().into_owned() },
            draw,
        })
    }
}

/// Reason why a command cannot draw from rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SetRowError {
    #[error("there are no rows to draw from")]
    NoRows,
    #[error("\\setrow names {variables} variables, but there are {} columns: {}", .columns.len(), .columns.join(", "))]
    Columns { variables: usize, columns: Vec<String> },
    #[error("there is no column \"{column}\" of weights, only {}", .columns.join(", "))]
    NoWeights { column: String, columns: Vec<String> },
    #[error(
        "row {row}: \"{found}\" in column \"{column}\" is no weight, which is a number of at least 0"
    )]
    NotAWeight { row: usize, column: String, found: String },
    #[error("no row has a weight above 0 in column \"{column}\"")]
    NoWeight { column: String },
}

/// How a command draws from its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPicker {
    targets: Box<[VariableSlot]>,
    /// The number of the table among those of [`Variables::with_tables`].
    table: usize,
    /// The columns of the variables, in their order.
    columns: Box<[usize]>,
    rows: usize,
    choice: Choice,
}

#[derive(Debug, Clone, PartialEq)]
enum Choice {
    Uniform,
    Zipfian(f64),
    /// The sums of the weights up to each row.
    Weighted(Box<[f64]>),
}

impl RowPicker {
    /// Checks that the command fits the rows, which are those of the table with this number.
    ///
    /// # Errors
    /// If there are no rows, if the columns are not as many as the variables, or if a weight is no positive number.
    pub fn new(
        command: &SetRow,
        table: &RowTable,
        number: usize,
    ) -> Result<RowPicker, SetRowError> {
        let names = || table.columns().iter().map(|name| String::from(&**name)).collect();
        let weights = match &command.draw {
            RowDraw::Weighted(column) => {
                let at = table.columns().iter().position(|name| name == column);
                let column = column.to_string();
                Some(at.ok_or_else(|| SetRowError::NoWeights { column, columns: names() })?)
            }
            RowDraw::Uniform | RowDraw::Zipfian(_) => None,
        };
        // Weights are no value of a variable, unless one is called like them.
        let is_value = |column: &usize| {
            Some(*column) != weights || command.names.contains(&table.columns()[*column])
        };
        let columns: Box<[usize]> = (0..table.columns().len()).filter(is_value).collect();
        if columns.len() != command.targets.len() {
            let columns = columns.iter().map(|at| table.columns()[*at].to_string()).collect();
            return Err(SetRowError::Columns { variables: command.targets.len(), columns });
        }
        if table.is_empty() {
            return Err(SetRowError::NoRows);
        }
        let choice = match (&command.draw, weights) {
            (RowDraw::Zipfian(parameter), _) => Choice::Zipfian(*parameter),
            (RowDraw::Weighted(_), Some(column)) => Choice::Weighted(sums(table, column)?),
            (RowDraw::Uniform | RowDraw::Weighted(_), _) => Choice::Uniform,
        };
        let targets = command.targets.clone();
        Ok(RowPicker { targets, table: number, columns, rows: table.len(), choice })
    }

    /// Draws a row, and sets the variables to its columns.
    pub fn set(&self, variables: &mut Variables, prng: &mut Xoroshiro128) {
        variables.set_row(&self.targets, self.table, self.draw(prng), &self.columns);
    }

    /// Draws the index of a row.
    fn draw(&self, prng: &mut Xoroshiro128) -> usize {
        let last = self.rows as i64 - 1;
        match &self.choice {
            Choice::Uniform => prng.uniform(0, last) as usize,
            Choice::Zipfian(parameter) => prng.zipfian(0, last, *parameter) as usize,
            Choice::Weighted(sums) => {
                let total = sums[self.rows - 1];
                // A row whose weight is 0 ends where the one before it ends, and is never the first beyond.
                let drawn = prng.double() * total;
                sums.partition_point(|sum| *sum <= drawn).min(self.rows - 1)
            }
        }
    }
}

fn sums(table: &RowTable, column: usize) -> Result<Box<[f64]>, SetRowError> {
    let name = || table.columns()[column].to_string();
    let mut total = 0.0;
    let one = |row: usize| {
        let cell = table.cell(row, column);
        let weight = cell.and_then(number::parse_double);
        match weight.filter(|weight| weight.is_finite() && *weight >= 0.0) {
            Some(weight) => {
                total += weight;
                Ok(total)
            }
            None => {
                let found = cell.map_or("NULL".into(), String::from_utf8_lossy).into_owned();
                Err(SetRowError::NotAWeight { row: row + 1, column: name(), found })
            }
        }
    };
    let sums: Box<[f64]> = (0..table.len()).map(one).collect::<Result<_, _>>()?;
    match total > 0.0 && total.is_finite() {
        true => Ok(sums),
        false => Err(SetRowError::NoWeight { column: name() }),
    }
}

/// A text that is not the one query of which the rows are wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum RowQueryError {
    #[error("the file must hold one query, and holds {0}")]
    Statements(u32),
    #[error("there is no value for parameter {0} of the query")]
    Parameter(String),
}

/// The one query of a text, without the semicolon at its end.
///
/// # Errors
/// If the text has another number of statements, or the query a parameter.
pub fn row_query(text: &str) -> Result<&str, RowQueryError> {
    let statements = sql::statements(text.as_bytes());
    if statements != 1 {
        return Err(RowQueryError::Statements(statements));
    }
    if let Some(place) = sql::parameter(text.as_bytes()) {
        return Err(RowQueryError::Parameter(text[place].to_owned()));
    }
    // Behind the semicolon stand blanks and comments only.
    Ok(text[..sql::end_of_first(text.as_bytes())].trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(words: &str) -> Result<SetRow, SetRowMistake> {
        let words: Vec<&[u8]> = words.split_whitespace().map(str::as_bytes).collect();
        SetRow::parse(&words, "loads/w.sql", &mut VariableNames::new())
    }

    fn picker(words: &str, csv: &str) -> Result<RowPicker, String> {
        let command = command(words).map_err(|mistake| mistake.message.to_owned())?;
        let table = RowTable::from_csv(csv).map_err(|error| error.to_string())?;
        RowPicker::new(&command, &table, 0).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_read() {
        let check = |words: &str, names: &[&str], kind, path: &str, draw: RowDraw| {
            let Ok(found) = command(words) else { panic!("{words} is refused") };
            assert_eq!(
                found.names.iter().map(|name| &**name).collect::<Vec<_>>(),
                names,
                "{words}"
            );
            let source = RowSource { kind, path: path.to_owned() };
            assert_eq!((found.source, found.draw), (source, draw), "{words}");
        };
        use RowSourceKind::{File, Query};
        check("a query q.sql", &["a"], Query, "loads/q.sql", RowDraw::Uniform);
        check("a,b FILE d/v.csv uniform", &["a", "b"], File, "loads/d/v.csv", RowDraw::Uniform);
        check("a , b ,c query /q", &["a", "b", "c"], Query, "/q", RowDraw::Uniform);
        check(
            "query, file file f weighted w",
            &["query", "file"],
            File,
            "loads/f",
            RowDraw::Weighted("w".into()),
        );
        check("a query q zipfian 1.5", &["a"], Query, "loads/q", RowDraw::Zipfian(1.5));
    }

    #[test]
    fn wrong_words_are_refused() {
        let check = |words: &str, expected: &str| match command(words) {
            Ok(found) => panic!("{words} is {found:?}"),
            Err(mistake) => assert_eq!(mistake.message, expected, "{words}"),
        };
        check("", "missing variable");
        check("a,", "missing variable");
        check(",a query q", "missing variable before a comma");
        check("a,,b query q", "missing variable before a comma");
        check("a b query q", "expected \"query\" or \"file\"");
        check("1a query q", "invalid variable name");
        check("a, a query q", "the same variable twice");
        check("a", "missing \"query\" or \"file\"");
        check("a query", "missing file name");
        check("a query q weighted", "missing column of weights");
        check("a query q zipfian", "missing distribution parameter");
        check("a query q zipfian 1", "zipfian parameter must be a number in range [1.001, 1000]");
        check("a query q zipfian :x", "zipfian parameter must be a number in range [1.001, 1000]");
        check("a query q uniformly", "unexpected distribution");
        check("a query q uniform 1", "too many arguments");
    }

    #[test]
    fn rows_must_fit_the_command() {
        let check = |words: &str, csv: &str, expected: &str| {
            assert_eq!(picker(words, csv).unwrap_err(), expected, "{words}");
        };
        check("a query q", "x\n", "there are no rows to draw from");
        let two = "\\setrow names 1 variables, but there are 2 columns: x, y";
        check("a query q", "x,y\n1,2\n", two);
        check(
            "a, y query q weighted w",
            "x,w\n1,2\n",
            &two.replace("1 v", "2 v").replace("2 columns: x, y", "1 columns: x"),
        );
        check(
            "a query q weighted v",
            "x,w\n1,2\n",
            "there is no column \"v\" of weights, only x, w",
        );
        let weight = |row: usize, found: &str| {
            format!(
                "row {row}: \"{found}\" in column \"w\" is no weight, which is a number of at least 0"
            )
        };
        check("a query q weighted w", "x,w\n1,2\n2,-1\n", &weight(2, "-1"));
        check("a query q weighted w", "x,w\n1,\n", &weight(1, "NULL"));
        check("a query q weighted w", "x,w\n1,nan\n", &weight(1, "nan"));
        check("a query q weighted w", "x,w\n1,0\n", "no row has a weight above 0 in column \"w\"");
        assert_eq!(picker("a query q weighted w", "w,x\n1,2\n").unwrap().columns[..], [1]);
        assert_eq!(picker("w, b query q weighted w", "w,x\n1,2\n").unwrap().columns[..], [0, 1]);
    }

    #[test]
    fn a_file_holds_one_query() {
        let check = |text: &str, expected: Result<&str, RowQueryError>| {
            assert_eq!(row_query(text), expected, "{text:?}");
        };
        check("SELECT 1", Ok("SELECT 1"));
        check("-- why\nSELECT ';' -- x;\n ;\n-- end;\n", Ok("-- why\nSELECT ';' -- x;"));
        check("SELECT 1; SELECT 2", Err(RowQueryError::Statements(2)));
        check("-- nothing", Err(RowQueryError::Statements(0)));
        check("SELECT $1", Err(RowQueryError::Parameter("$1".to_owned())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Each row comes as often as its weight says, within six standard deviations; one of weight 0 never.
        #[test]
        fn rows_come_by_their_weights(
            weights in prop::collection::vec(0_u32..50, 1..40), seed: u64,
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let lines: String = weights.iter().map(|weight| format!("x,{weight}\n")).collect();
            let picker = picker("a query q weighted w", &format!("x,w\n{lines}")).unwrap();
            let (mut prng, draws) = (Xoroshiro128::from_seed(seed), 20_000);
            let mut counts = vec![0_u32; weights.len()];
            (0..draws).for_each(|_| counts[picker.draw(&mut prng)] += 1);
            let total = f64::from(weights.iter().sum::<u32>());
            for (count, weight) in counts.into_iter().zip(weights) {
                let share = f64::from(weight) / total;
                let (mean, deviation) =
                    (share * f64::from(draws), (share * (1.0 - share) * f64::from(draws)).sqrt());
                prop_assert!((f64::from(count) - mean).abs() <= 6.0 * deviation, "{count} of {mean}");
            }
        }

        /// The row k comes as often as k to the power of minus the parameter says.
        #[test]
        fn the_first_rows_come_most_often(rows in 2_usize..50, parameter in 1.1..3.0_f64, seed: u64) {
            let lines = "1\n".repeat(rows);
            let words = format!("a query q zipfian {parameter}");
            let picker = picker(&words, &format!("x\n{lines}")).unwrap();
            let (mut prng, draws) = (Xoroshiro128::from_seed(seed), 20_000);
            let mut counts = vec![0_u32; rows];
            (0..draws).for_each(|_| counts[picker.draw(&mut prng)] += 1);
            let power = |row: usize| ((row + 1) as f64).powf(-parameter);
            let total: f64 = (0..rows).map(power).sum();
            for (row, count) in counts.into_iter().enumerate() {
                let share = power(row) / total;
                let (mean, deviation) =
                    (share * f64::from(draws), (share * (1.0 - share) * f64::from(draws)).sqrt());
                prop_assert!((f64::from(count) - mean).abs() <= 6.0 * deviation, "{count} of {mean}");
            }
        }
    }

    #[test]
    fn a_seed_draws_the_same_rows_and_all_of_them() {
        let picker = picker("a query q", &format!("x\n{}", "1\n".repeat(10))).unwrap();
        let draw = |seed| {
            let mut prng = Xoroshiro128::from_seed(seed);
            (0..200).map(|_| picker.draw(&mut prng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!((0..10).all(|row| draw(7).contains(&row)));
    }
}
