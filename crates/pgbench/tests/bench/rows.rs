//! `\setrow`, `:'name'` and `$n`: pgrig's own, which pgbench refuses or leaves as they stand.

use std::fs;
use std::path::Path;

use pgbench::options::{Invocation, Request};

use crate::common::{Ended, Server, ours, ours_as_its_server};

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect(name);
    }
    folder
}

const ROWS: &str = "id,name,often\n1,\"it's \\\",1\n2,,2\n3,\"\"\"é\n☃\",3\n4,never,0\n";

#[test]
fn scripts_draw_rows_of_files_and_queries() {
    let server = Server::start(&[]);
    let folder = folder(&[
        ("rows.csv", ROWS),
        ("load/q.sql", "-- all of them\nSELECT * FROM source ORDER BY id;\n"),
        (
            "load/file.sql",
            "\\setrow id, name file ../rows.csv weighted often\nINSERT INTO got VALUES (:id, :'name');\n",
        ),
        (
            "load/query.sql",
            "\\setrow id, name query q.sql zipfian 1.2\n\\if :id > 0\n\
             INSERT INTO got VALUES (:'id', :'name');\n\\endif\n",
        ),
    ]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    server.execute(
        "postgres",
        r#"CREATE TABLE source (id int, name text); CREATE TABLE got (id int, name text);
           INSERT INTO source VALUES (1, 'it''s \'), (2, NULL), (3, E'"é\n☃')"#,
    );
    for protocol in ["simple", "extended", "prepared"] {
        for threads in [1, 2] {
            server.execute("postgres", "TRUNCATE got");
            let (query, file) = (path("load/query.sql"), path("load/file.sql"));
            let line = format!(
                "-n -M {protocol} -c 2 -j {threads} -t 40 --random-seed 5 -f {query} -f {file}"
            );
            let ended = ours_as_its_server(&server.environment("postgres"), &line);
            assert_eq!(ended.code, 0, "{ended:?}");
            let differing = server.value(
                "postgres",
                "SELECT count(*) FROM got g LEFT JOIN source s USING (id)
                 WHERE s.id IS NULL OR s.name IS DISTINCT FROM g.name",
            );
            assert_eq!(differing, "0", "{protocol}");
            let seen = "SELECT count(*) || ' ' || count(DISTINCT id) FROM got";
            assert_eq!(server.value("postgres", seen), "80 3");
        }
    }
}

#[test]
fn what_is_wrong_is_told_before_the_server_is_asked() {
    let check = |files: &[(&str, &str)], expected: &str, hint: &str| {
        let folder = folder(files);
        let script = folder.path().join("w.sql").display().to_string();
        let nowhere = [("PGHOST".to_owned(), "/nowhere".to_owned())];
        let Ended { code, err, .. } = ours_as_its_server(&nowhere, &format!("-n -f {script}"));
        let told = err.replace(&format!("{}/", folder.path().display()), "");
        assert_eq!(code, 1);
        assert!(told.starts_with(&format!("pgbench: error: {expected}\n")), "{told}");
        assert!(told.contains(&format!("pgrig: hint: {hint}")), "{told}");
    };
    let draws = "SELECT 1;\n\\setrow id, name file rows.csv\nSELECT :'id';\n";
    check(
        &[("w.sql", draws)],
        "w.sql:2: could not open file \"rows.csv\": No such file or directory",
        "a file of \\setrow is looked for from the folder of its script",
    );
    check(
        &[("w.sql", draws), ("rows.csv", ROWS)],
        "w.sql:2: rows.csv: \\setrow names 2 variables, but there are 3 columns: id, name, often",
        "name a variable for each column, in their order",
    );
    check(
        &[("w.sql", draws), ("rows.csv", "id,name\n1,2\n3\n")],
        "rows.csv: its rows cannot be read: line 3: 1 columns, but the first line names 2",
        "write the file by COPY",
    );
    check(
        &[("w.sql", "\\setrow id query q.sql\nSELECT :id;\n"), ("q.sql", "SELECT 1; SELECT 2;\n")],
        "q.sql: the file must hold one query, and holds 2",
        "write one SELECT, VALUES or TABLE into the file",
    );
    check(
        &[("w.sql", "SELECT '$1',\n  $1;\n")],
        "w.sql:2: no script has a value for parameter $1\n  $1;\n   ^ error found here",
        "write a variable, :name or :'name', and set it by \\set or \\setrow (docs/pgbench.md",
    );
}

#[test]
fn pgbench_has_none_of_it() {
    let server = Server::start(&[]);
    let folder = folder(&[
        ("row.sql", "\\setrow id file rows.csv\nSELECT 1;\n"),
        ("quoted.sql", "\\set x 1\nSELECT :'x';\n"),
        ("numbered.sql", "SELECT $1;\n"),
    ]);
    let check = |file: &str, line: &str, code: i32, expected: &str| {
        let path = |name: &str| Path::join(folder.path(), name).display().to_string();
        let environment = server.environment("postgres");
        let ended = ours(&environment, &format!("{line} -n -t 1 -f {}", path(file)));
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.err.contains(expected), "{ended:?}");
    };
    for line in ["", "--as 15", "--as 19"] {
        check("row.sql", line, 1, "row.sql:1: invalid command in command \"setrow\"");
        check("quoted.sql", line, 2, "syntax error at or near \":\"");
        check("numbered.sql", line, 2, "there is no parameter $1");
    }
}

#[test]
fn pgrig_takes_more_scripts_than_pgbench() {
    let read = |count: usize, follows_server: bool| {
        let arguments = vec!["-S".to_owned(); count];
        let invocation = Invocation { follows_server, ..Invocation::of(&arguments, None) };
        match Request::read(&invocation) {
            Ok(Request::Run(options)) => Ok(options.scripts.len()),
            Ok(_) => panic!("no run"),
            Err(complaint) => Err(complaint.message().to_owned()),
        }
    };
    let most = |count: usize| Err(format!("at most {count} SQL scripts are allowed"));
    assert_eq!(read(128, false), Ok(128));
    assert_eq!(read(129, false), most(128));
    assert_eq!(read(4_096, true), Ok(4_096));
    assert_eq!(read(4_097, true), most(4_096));
}
