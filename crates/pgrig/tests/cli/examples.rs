//! The examples of the README, the pages and the help can be typed as they are printed: what runs is planned,
//! what looks is run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Desk;

/// The commands in a text that begin with `pgrig compare`, without what the shell makes of them.
fn examples(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().flat_map(|line| line.split('`'));
    let commands = lines.filter_map(|line| {
        let line = line.split(" # ").next().unwrap_or(line).trim();
        let line = line.strip_prefix("taskset -c 1 ").unwrap_or(line);
        let line = line.strip_prefix("$ cd docs/questions && ").unwrap_or(line);
        line.strip_prefix("pgrig compare -")
    });
    let words = |rest: &str| -> Vec<String> {
        let line = format!("compare -{rest}");
        line.split_whitespace().map(str::to_owned).collect()
    };
    commands.map(words).filter(|words| words.len() > 2).collect()
}

/// What stands for the files and folders that an example names. A copy of PostgreSQL's programs is another
/// installation.
fn placed(desk: &Desk) -> impl Fn(&str) -> String {
    let bin = testing::servers::installation().bin().display().to_string();
    let copy = desk.path("patched").display().to_string();
    let copied = std::process::Command::new("cp").args(["-r", &bin, &copy]).status();
    assert!(copied.expect("cp runs").success());
    // initdb of PostgreSQL 18 turns checksums on by itself.
    let has_checksums = testing::servers::installation().version().major >= 18;
    move |word| match word {
        "--b-initdb=--data-checksums" if has_checksums => {
            "--b-initdb=--no-data-checksums".to_owned()
        }
        "/opt/pg18/bin" => bin.clone(),
        "/opt/pg19/bin" | "/opt/patched/bin" => copy.clone(),
        "shop.dump" => "shop.sql".to_owned(),
        word => word.to_owned(),
    }
}

#[test]
fn every_example_is_a_command_that_works() {
    let desk = Desk::new();
    for name in
        ["schema.sql", "index.sql", "orders.sql", "by_customer.sql", "report.sql", "shop.sql"]
    {
        desk.write(name, "SELECT 1;\n");
    }
    desk.write("shop/scripts/1.sql", "SELECT 1;\n");
    let script = "[[script]]\nfile = \"scripts/1.sql\"\ncovered = true\nweight = 1\n";
    desk.write("shop/workload.toml", &format!("format = 1\n{script}"));
    desk.write("fix.patch", "");
    desk.write("postgresql.conf", "jit = on\nwork_mem = 8MB\n");
    let (production, _lab) = testing::servers::server(&[]);
    let mut backup = std::process::Command::new(production.installation().program("pg_basebackup"));
    backup.args(["--dbname", &production.endpoint().to_string(), "--checkpoint=fast", "--pgdata"]);
    assert!(backup.arg(desk.path("backup")).status().expect("pg_basebackup runs").success());
    desk.write("postgres/configure", "");
    for words in ["init -q -b master", "add .", "commit -q -m first"] {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=ann", "-c", "user.email=ann@localhost"]);
        git.args(words.split(' ')).current_dir(desk.path("postgres"));
        assert!(git.status().expect("git runs").success(), "{words}");
    }
    let placed = placed(&desk);
    let help = desk.pgrig(&["compare", "--help"]).ended(0).out;
    let mut pages: Vec<String> = pages().iter().map(|path| read(path)).collect();
    pages.push(help);
    let (mut n, mut known) = (0, BTreeSet::new());
    for words in pages.iter().flat_map(|page| examples(page)) {
        if words.iter().any(|word| is_place(word)) || !known.insert(words.clone()) {
            continue;
        }
        let mut words: Vec<String> = words.iter().map(|word| placed(word)).collect();
        words.push("--dry-run".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = desk.pgrig(&words);
        assert_eq!(said.code, Some(0), "{words:?}: {}", said.err);
        assert!(!desk.path("runs").exists(), "{words:?}");
        n += 1;
    }
    assert!(n >= 8, "{n} examples");
}

/// The pages whose examples have no files of their own.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("studies/README.md")];
    for folder in ["docs", "docs/studies", "docs/measurements"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of pages");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.retain(|path| !path.ends_with("docs/questions.md"));
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a page")
}

/// True of a word that stands for one of the reader's own.
fn is_place(word: &str) -> bool {
    let is_name = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    is_name || word.contains('…')
}

/// The command that shows what a command of the pages would do, or the command itself if it only looks; none
/// of those that need a server, hosts or a record.
fn harmless(command: &str, studies: &[String]) -> Option<Vec<String>> {
    let command = command.split(" #").next().unwrap_or(command);
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    let elsewhere = ["--target", "--hosts", "--node", "--state", "--resume", "--trial", ">"];
    if words.iter().any(|word| is_place(word) || elsewhere.contains(word)) {
        return None;
    }
    let asked = match words.get(1..)? {
        ["run", study, options @ ..] if studies.iter().any(|known| known == study) => {
            let options = options.chunks(2).filter(|option| {
                ["--profile", "--only", "--set"].contains(&option[0]) && option.len() == 2
            });
            [&["check", study][..], &options.flatten().copied().collect::<Vec<_>>()].concat()
        }
        // [WORD] stands for any.
        words if words.iter().any(|word| word.starts_with('[')) => return None,
        words @ (["check" | "words" | "metrics" | "studies", ..] | ["completions", _]) => {
            words.to_vec()
        }
        _ => return None,
    };
    Some(asked.into_iter().map(str::to_owned).collect())
}

/// Studies and patterns that the pages name are there, and fit this machine or say why not.
#[test]
fn what_the_pages_run_can_be_planned() {
    let desk = Desk::new();
    desk.pgrig(&["new", "mine"]).ended(0);
    let studies = desk.pgrig(&["studies", "--json"]).ended(0).out;
    let studies: serde_json::Value = serde_json::from_str(&studies).unwrap();
    let studies = studies.as_array().unwrap().iter().map(|study| study["name"].as_str().unwrap());
    let studies: Vec<String> = studies.chain(["./mine"]).map(str::to_owned).collect();
    let mut commands = BTreeSet::new();
    for page in pages() {
        let text = read(&page);
        let spans = text.lines().flat_map(|line| line.split('`'));
        let spans =
            spans.map(|span| span.trim().trim_start_matches("$ ").trim_start_matches("sudo "));
        let spans = spans.filter(|span| span.starts_with("pgrig "));
        commands.extend(spans.filter_map(|span| harmless(span, &studies)));
    }
    assert!(commands.len() >= 25, "{commands:?}");
    let check = |words: &Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = desk.pgrig(&words);
        assert!([Some(0), Some(3)].contains(&said.code), "{words:?}: {}", said.err);
    };
    let commands: Vec<Vec<String>> = commands.into_iter().collect();
    std::thread::scope(|scope| {
        for half in commands.chunks(commands.len().div_ceil(2)) {
            scope.spawn(|| half.iter().for_each(check));
        }
    });
    assert!(!desk.path("runs").exists());
}

/// Those of docs/questions.md, whose files are beside it.
#[test]
fn every_question_can_be_asked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/questions.md")).expect("the page");
    // One needs huge pages, which root reserves, and one is about a setting of PostgreSQL 18.
    let asked = page
        .lines()
        .filter(|line| !["huge_pages=on", "io_method"].iter().any(|it| line.contains(it)));
    let all = examples(&asked.collect::<Vec<_>>().join("\n"));
    assert!(all.len() >= 15, "{} questions", all.len());
    let desk = Desk::new();
    let placed = placed(&desk);
    for words in all {
        let mut words: Vec<String> = words.iter().map(|word| placed(word)).collect();
        words.push("--dry-run".to_owned());
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pgrig"))
            .args(&words)
            .current_dir(root.join("docs/questions"))
            .output()
            .expect("pgrig runs");
        let said = crate::Said::of(&output);
        assert_eq!(said.code, Some(0), "{words:?}: {}", said.err);
    }
}

/// The README shows the head of the table and the names of its rows as they are printed.
pub(crate) fn is_as_in_the_readme(said: &str) {
    let page = include_str!("../../../../README.md");
    let shown = page.split("$ cd docs/questions && pgrig compare").nth(1).expect("an example");
    let shown = shown.split("```").next().unwrap_or_default();
    let is_cell = |cell: &&str| !cell.is_empty() && !cell.starts_with(|c: char| c.is_ascii_digit());
    let names = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(is_cell).map(str::to_owned).collect()
    };
    let printed: Vec<Vec<String>> = said.lines().map(names).collect();
    let rows: Vec<&str> = shown
        .lines()
        .filter(|line| {
            line.contains("B ÷ A") || line.ends_with("better") || line.ends_with("worse")
        })
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    for row in rows {
        // The verdict is that of another comparison.
        let name = &names(row)[0];
        assert!(printed.iter().any(|names| names.first() == Some(name)), "{name} is not in {said}");
    }
    assert!(
        shown.contains("A: as it is. B: index.sql.\n")
            && shown.contains("\nB with index.sql is faster than A: ")
    );
}
