//! What a judgement assumes, and what it never looks at. The page docs/isolation.md has the same lists.

/// What the judgement takes for granted.
pub const ASSUMES: [&str; 8] = [
    "Lists and registers are empty when the load begins.",
    "Each value is written to its key once.",
    "A script is one transaction, and a mark says what its statement does.",
    "A statement whose tag counts no row has written nothing: a trigger or a rule that writes elsewhere returns a row.",
    "A list is read with all its elements, in the order of the appends.",
    "What a client was told to be failed has not happened.",
    "Moments differ from the clock of the run by no more than the bounds that the files tell.",
    "A transaction of unknown outcome has committed if a committed one read what it wrote, and is left out otherwise.",
];

/// What the judgement never looks at.
pub const NEVER_LOOKS_AT: [&str; 8] = [
    "Predicates: rows that a condition selects, and phantoms.",
    "Statements without a mark, and deletes.",
    "Reads of transactions that failed, or of which nobody saw a write and whose outcome is unknown.",
    "Which transactions moved money between accounts: of balances only the sum is judged.",
    "Writes that nobody read afterwards: whether they are kept is the ledger's question.",
    "Which transaction of two is at fault.",
    "Values in lines or files that are missing: reads of them are not judged.",
    "Rates: anomalies that are rarer than the load could show.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_lists() {
        let page = include_str!("../../../docs/isolation.md");
        let check = |heading: &str, expected: &[&str]| {
            let (_, rest) = page.split_once(heading).expect(heading);
            let section = rest.split("\n## ").next().expect("what follows");
            let items: Vec<&str> = section.lines().filter_map(|x| x.strip_prefix("- ")).collect();
            assert_eq!(items, expected, "{heading}");
        };
        check("\n## What a judgement assumes\n", &ASSUMES);
        check("\n## What a judgement never looks at\n", &NEVER_LOOKS_AT);
    }
}
