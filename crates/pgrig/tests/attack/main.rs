//! A live campaign against verdicts: something is broken in the middle of a real run, at a seeded moment,
//! and `--gate` never ends with 0, neither then nor after `--resume`.
//!
//! A few attacks are part of the suite. `make attack` makes as many as it is asked for, writes each down,
//! and goes on behind the last one that is written down:
//!
//! - `PGRIG_ATTACKS=200`: so many, by seed from 1;
//! - `PGRIG_ATTACKS_FILE=PATH`: where they are written down.

#![expect(clippy::print_stdout, reason = "the table of the big campaign")]

mod acts;
mod book;
mod proxy;
mod run;
mod targets;
mod victim;

use acts::Act;
use book::Book;
use run::Attacked;
use targets::Target;

/// One of each kind that takes seconds, and what each is worth.
#[test]
fn a_few_attacks_never_end_in_a_green_gate() {
    if !testing::skip::is_root() {
        return testing::skip::no_root();
    }
    let few = [
        (Act::HeapPage, "pgbench", "published/read_write"),
        (Act::KillCheckpointer, "pgbench", "published/function"),
        (Act::DropRows, "replication", "C/sync_standby_stops"),
    ];
    for (seed, (act, study, point)) in (1..).zip(few) {
        let target = targets::all().into_iter().find(|one| one.is(study, point)).unwrap();
        let attacked = run::attack(seed, act, &target);
        assert!(attacked.has_landed, "{act:?} of {study} {point}: {attacked:?}");
        assert!(!attacked.is_green(), "{act:?} of {study} {point}: {attacked:?}");
    }
}

/// A run that nobody attacks passes its gate: otherwise the others prove nothing.
#[test]
fn a_run_that_is_left_alone_passes() {
    if !testing::skip::is_root() {
        return testing::skip::no_root();
    }
    let target = targets::all().into_iter().find(|one| one.is("pgbench", "published/function"));
    let target = target.unwrap();
    // A gate is not green either where the hypervisor gave the CPU to others, which nobody here decides.
    let mut runs = (1..=3).map(|seed| run::attack(seed, Act::Nothing, &target));
    let passed = |attacked: &Attacked| attacked.first == Some(0);
    let was_stolen = |attacked: &Attacked| attacked.said.contains("the hypervisor gave");
    let last =
        runs.find(|attacked| passed(attacked) || !was_stolen(attacked)).expect("a quiet run");
    assert!(passed(&last), "{last:?}");
}

#[test]
#[ignore = "takes an hour: make attack"]
fn no_attack_ever_ends_in_a_green_gate() {
    let asked = std::env::var("PGRIG_ATTACKS").ok().and_then(|text| text.parse().ok());
    let mut book = Book::open();
    let mut green: Vec<String> = Vec::new();
    for seed in 1..=asked.unwrap_or(200) {
        if book.has(seed) {
            continue;
        }
        let (act, target) = targets::drawn(seed);
        let attacked: Attacked = run::attack(seed, act, &target);
        book.note(seed, act, &target, &attacked);
        println!("{seed:4}  {act:?}  {target}  {attacked}");
    }
    green.extend(book.green());
    book.print();
    assert!(green.is_empty(), "green in spite of an attack: {green:#?}");
}

/// `STUDY POINT`.
impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.study, self.point)
    }
}
