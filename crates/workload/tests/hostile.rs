//! Foreign bytes: whatever a source holds, its reader refuses or reads it, and nothing panics.

use std::fs;

use proptest::prelude::*;
use workload::{CallFilter, LinePrefix, WorkloadRequest, WorkloadSource, make, read};

fn request(out: &std::path::Path, source: WorkloadSource) -> WorkloadRequest {
    let filter = CallFilter::default();
    WorkloadRequest { out: out.to_owned(), source, like: None, filter, has_values: true }
}

/// Pieces of which hostile lines are made.
const PIECES: [&str; 24] = [
    "2026-03-01 09:00:00.123 UTC",
    " [77] ",
    "LOG:  ",
    "DETAIL:  ",
    "duration: 1 ms  ",
    "statement: ",
    "execute <unnamed>: ",
    "parameters: $1 = \'",
    "select ",
    "a from t where b = ",
    "$1",
    "\'",
    "\"",
    "$x$é",
    ",",
    "{",
    "}",
    "\t",
    "é",
    "E\'\\",
    "/*",
    "--",
    "0x",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn hostile_lines_of_logs_and_exports_are_read_or_refused(
        picks in prop::collection::vec(0..PIECES.len(), 1..30),
        noise in "\\PC{0,10}",
    ) {
        let text: String = picks.iter().map(|at| PIECES[*at]).collect::<String>() + &noise;
        let _ = read(&text);
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("source");
        for begin in [
            "", "2026-03-01 09:00:00.123 UTC [7] LOG:  duration: 1 ms  statement: ",
            "2026-03-01 09:00:00 UTC,u,d,1,h,s,1,c,2026-03-01,3/0,0,LOG,0,\"duration: 1 ms  statement: ",
            "query,calls,total_exec_time\n",
        ] {
            fs::write(&file, format!("{begin}{text}")).expect("a file");
            let prefix = LinePrefix::parse("%m [%p] ").expect("a prefix");
            for (name, source) in [
                ("log", WorkloadSource::Logs(vec![file.clone()], prefix)),
                ("csv", WorkloadSource::Statements(vec![file.clone()])),
            ] {
                let out = folder.path().join(name);
                if let Err(error) = make(&request(&out, source)) {
                    prop_assert!(error.hint().is_some(), "{error}");
                }
                let _ = fs::remove_dir_all(out);
            }
        }
    }
}
