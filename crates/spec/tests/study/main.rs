//! What a study.toml becomes, and what is said when it cannot become anything.

mod claims;
mod coverage;
mod figures;
mod logical;
mod machines;
mod mistakes;
mod nemesis;
mod patience;
mod phases;
mod points;
mod restores;
mod schema;
mod set;
mod shipped;
mod strength;
mod topology;

use std::collections::BTreeMap;

use proptest::prelude::*;
use spec::{ClaimSubject, Pace, Protocol, Study, StudyFolder, StudyProblem, StudyProfile, WarmUp};

/// A folder with two scripts and this study.toml.
fn folder(study: &str) -> StudyFolder {
    let files = [
        ("study.toml", study),
        ("orders.sql", "INSERT INTO orders VALUES (:client_id);\n"),
        ("init.sql", "CREATE TABLE orders (client int);\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    StudyFolder { name: "mine".to_owned(), files: BTreeMap::from(files), is_private: false }
}

fn parse(study: &str) -> Study {
    parse_in(study, StudyProfile::Quick)
}

fn parse_in(study: &str, profile: StudyProfile) -> Study {
    match Study::parse(&folder(study), profile) {
        Ok(study) => study,
        Err(problems) => panic!("{}", render(study, &problems)),
    }
}

fn render(study: &str, problems: &[StudyProblem]) -> String {
    let lines = problems.iter().map(|problem| {
        let at = &study[problem.span.clone()];
        let at = at.lines().next().unwrap_or_default();
        let hint = problem.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("`{at}` {}{hint}\n", problem.message)
    });
    lines.collect()
}

/// The problems of a study, one a line, each with the text that it points at.
fn problems(study: &str) -> String {
    match Study::parse(&folder(study), StudyProfile::Quick) {
        Ok(_) => String::new(),
        Err(problems) => render(study, &problems),
    }
}

/// The study of one's own that the design shows.
const OWN: &str = r#"
question = "Does synchronous_commit=off pay off on our storage?"

[data]
script = "init.sql"
rows   = { smoke = 10_000, quick = 1_000_000, full = 50_000_000 }

[variants.safe]
settings = { synchronous_commit = "on" }

[variants.fast]
settings = { synchronous_commit = "off" }

[workloads.orders]
script = "orders.sql"

[scenarios.load]
run  = ["orders"]
over = { clients = [8, 64] }

[[claims]]
says   = "off is at least twice as fast with 8 clients"
value  = "tps('fast/load/orders', 'clients=8') / tps('safe/load/orders', 'clients=8')"
expect = ">= 2.0"
"#;
