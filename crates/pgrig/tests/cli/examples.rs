//! Every example of `pgrig compare` and `pgrig bisect` in the README, the pages and the help can be typed
//! as it is printed.

use std::path::Path;

use crate::Desk;

/// The commands in a text that begin with `pgrig compare`, without what the shell makes of them.
fn examples(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().flat_map(|line| line.split('`'));
    let commands = lines.filter_map(|line| {
        let line = line.split(" # ").next().unwrap_or(line).trim();
        let line = line.strip_prefix("taskset -c 1 ").unwrap_or(line);
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
    let bin = lab::find::find(None).expect("PostgreSQL is installed").bin().display().to_string();
    let copy = desk.path("patched").display().to_string();
    let copied = std::process::Command::new("cp").args(["-r", &bin, &copy]).status();
    assert!(copied.expect("cp runs").success());
    move |word| match word {
        "/opt/pg18/bin" => bin.clone(),
        "/opt/pg19/bin" | "/opt/patched/bin" => copy.clone(),
        "shop.dump" => "shop.sql".to_owned(),
        word => word.to_owned(),
    }
}

#[test]
fn every_example_is_a_command_that_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let desk = Desk::new();
    for name in ["schema.sql", "index.sql", "orders.sql", "report.sql", "shop.sql"] {
        desk.write(name, "SELECT 1;\n");
    }
    let placed = placed(&desk);
    let help = desk.pgrig(&["compare", "--help"]).ended(0).out;
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a page");
    let pages = [read("README.md"), read("docs/compare.md"), help];
    let mut n = 0;
    for words in pages.iter().flat_map(|page| examples(page)) {
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

/// Those of docs/questions.md, whose files are beside it.
#[test]
fn every_question_can_be_asked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/questions.md")).expect("the page");
    let asked = page.lines().filter(|line| !line.contains("not asked here"));
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
