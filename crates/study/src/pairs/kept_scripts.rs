//! The scripts of a comparison's options and the files that they draw rows from, in the folder that the record keeps.

use std::path::Path;

use load::RowsContent;
use pgbench::options::{Origin, RunOptions};
use sha2::{Digest as _, Sha256};
use spec::StudyFolder;

/// Bytes of a file of which more than the digest is kept.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The same of all files together, well below what a reader of records takes.
const ALL_BYTES_MAX: usize = 16 << 20;

/// Adds them. A folder with rows is private: they may come from somebody's production.
pub(super) fn add(folder: &mut StudyFolder, options: &RunOptions) {
    let scripts = options.scripts.iter().filter(|script| script.origin == Origin::File);
    let scripts = scripts.map(|script| ("scripts", script.name.as_str(), script.text.as_str()));
    let rows = options.rows.iter().map(|rows| {
        let (RowsContent::Query(text) | RowsContent::Csv(text)) = &rows.content;
        ("rows", rows.source.path.as_str(), &**text)
    });
    folder.is_private |= !options.rows.is_empty();
    let mut bytes = 0;
    for (number, (below, path, text)) in scripts.chain(rows).enumerate() {
        // "-" is the script of standard input; a path that was read ends in a name.
        let name = Path::new(path).file_name().map_or("-".into(), |name| name.to_string_lossy());
        let name = format!("{below}/{}-{name}", number + 1);
        if text.len() <= FILE_BYTES_MAX && bytes + text.len() <= ALL_BYTES_MAX {
            bytes += text.len();
            folder.files.insert(name, text.to_owned());
        } else {
            let digest: String =
                Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
            folder.files.insert(format!("{name}.sha256"), format!("{digest}  {path}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgbench::options::{Invocation, Request};

    #[test]
    fn a_record_has_the_scripts_and_the_rows_that_are_small() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        write("w.sql", "\\setrow a file small.csv\n\\setrow b file big.csv\nSELECT :'a';\n");
        write("small.csv", "x\n1\n");
        write("big.csv", &format!("x\n{}\n", "1".repeat(FILE_BYTES_MAX)));
        let script = place.path().join("w.sql").display().to_string();
        let words = ["-S".to_owned(), "-f".to_owned(), script];
        let invocation = Invocation { follows_server: true, ..Invocation::of(&words, None) };
        let Ok(Request::Run(options)) = Request::read(&invocation) else { panic!("no run") };
        let mut folder = StudyFolder::default();
        add(&mut folder, &options);
        let names: Vec<&str> = folder.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["rows/2-small.csv", "rows/3-big.csv.sha256", "scripts/1-w.sql"]);
        assert_eq!(folder.files["rows/2-small.csv"], "x\n1\n");
        let digest = &folder.files["rows/3-big.csv.sha256"];
        assert_eq!(digest.split("  ").next().map(str::len), Some(64), "{digest}");
        assert!(folder.is_private);
    }
}
