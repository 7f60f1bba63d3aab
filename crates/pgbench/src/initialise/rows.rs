//! The rows of pgbench's tables, in COPY's text format.
//!
//! Every row is a counter, its parent's number and a constant end, so the counter's digits are
//! kept and counted up in place: no division, no formatting, no allocation for a row.

/// Branches for each unit of scale.
pub(super) const BRANCHES_PER_SCALE: u64 = 1;
/// Tellers for each unit of scale.
pub(super) const TELLERS_PER_SCALE: u64 = 10;
/// Accounts for each unit of scale.
pub(super) const ACCOUNTS_PER_SCALE: u64 = 100_000;

/// The rows of one table, in order.
pub(super) struct Rows {
    key: Counter,
    branch: Option<Branch>,
    end: &'static [u8],
}

/// The branch that a row belongs to.
struct Branch {
    number: Counter,
    /// Rows of the table that belong to one branch.
    rows_each: u64,
    /// Rows of the current branch still to come.
    rows_left: u64,
}

impl Rows {
    /// The filler of a branch is NULL.
    pub(super) fn branches() -> Self {
        Rows { key: Counter::one(), branch: None, end: b"\t0\t\\N\n" }
    }

    /// The filler of a teller is NULL.
    pub(super) fn tellers() -> Self {
        Rows::of_branches(TELLERS_PER_SCALE, b"\t0\t\\N\n")
    }

    /// The filler of an account is an empty string, which `char(84)` pads.
    pub(super) fn accounts() -> Self {
        Rows::of_branches(ACCOUNTS_PER_SCALE, b"\t0\t\n")
    }

    /// The accounts from this one on.
    pub(super) fn accounts_from(aid: u64) -> Self {
        let mut rows = Rows::accounts();
        rows.key = Counter::at(aid);
        if let Some(branch) = &mut rows.branch {
            branch.number = Counter::at((aid - 1) / ACCOUNTS_PER_SCALE + 1);
            branch.rows_left = ACCOUNTS_PER_SCALE - (aid - 1) % ACCOUNTS_PER_SCALE;
        }
        rows
    }

    fn of_branches(rows_each: u64, end: &'static [u8]) -> Self {
        let branch = Branch { number: Counter::one(), rows_each, rows_left: rows_each };
        Rows { key: Counter::one(), branch: Some(branch), end }
    }

    /// Appends the next `count` rows.
    pub(super) fn append(&mut self, count: u64, to: &mut Vec<u8>) {
        for _ in 0..count {
            to.extend_from_slice(self.key.digits());
            self.key.increment();
            if let Some(branch) = &mut self.branch {
                to.push(b'\t');
                to.extend_from_slice(branch.number.digits());
                branch.rows_left -= 1;
                if branch.rows_left == 0 {
                    branch.number.increment();
                    branch.rows_left = branch.rows_each;
                }
            }
            to.extend_from_slice(self.end);
        }
    }
}

/// A decimal number that counts up in place.
struct Counter {
    /// Right-aligned digits; 20 hold every 64-bit number.
    text: [u8; 20],
    begin: usize,
}

impl Counter {
    fn one() -> Self {
        let mut text = [b'0'; 20];
        text[19] = b'1';
        Counter { text, begin: 19 }
    }

    fn at(number: u64) -> Self {
        let digits = number.to_string();
        let mut counter = Counter { text: [b'0'; 20], begin: 20 - digits.len() };
        counter.text[20 - digits.len()..].copy_from_slice(digits.as_bytes());
        counter
    }

    fn digits(&self) -> &[u8] {
        &self.text[self.begin..]
    }

    fn increment(&mut self) {
        let mut at = self.text.len() - 1;
        while self.text[at] == b'9' {
            self.text[at] = b'0';
            at -= 1;
        }
        self.text[at] += 1;
        self.begin = self.begin.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_pgbenchs() {
        let check = |mut rows: Rows, skip: u64, expected: &str| {
            rows.append(skip, &mut Vec::new());
            let mut text = Vec::new();
            rows.append(2, &mut text);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        };
        check(Rows::branches(), 0, "1\t0\t\\N\n2\t0\t\\N\n");
        check(Rows::tellers(), 9, "10\t1\t0\t\\N\n11\t2\t0\t\\N\n");
        check(Rows::accounts(), 0, "1\t1\t0\t\n2\t1\t0\t\n");
        check(Rows::accounts(), 99_999, "100000\t1\t0\t\n100001\t2\t0\t\n");
        check(Rows::accounts_from(1), 0, "1\t1\t0\t\n2\t1\t0\t\n");
        check(Rows::accounts_from(900_001), 99_999, "1000000\t10\t0\t\n1000001\t11\t0\t\n");
        check(Rows::accounts_from(200_000), 0, "200000\t2\t0\t\n200001\t3\t0\t\n");
        check(Rows::accounts(), 999_999, "1000000\t10\t0\t\n1000001\t11\t0\t\n");
    }

    #[test]
    fn counters_carry() {
        let mut counter = Counter::one();
        for number in 1..12_345u32 {
            assert_eq!(counter.digits(), number.to_string().as_bytes());
            counter.increment();
        }
    }
}
