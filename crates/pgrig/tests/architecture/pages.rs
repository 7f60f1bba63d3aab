//! What pages hold to: links that lead somewhere, files that are there, no day and no machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{files, root};

/// The Rust files of all packages.
fn all_files() -> Vec<PathBuf> {
    ["crates", "tools"].iter().flat_map(|folder| files(&root().join(folder))).collect()
}

/// An example in a comment would be a program of its own to build: `doctest = false`.
#[test]
fn examples_in_comments_are_no_programs() {
    for path in all_files() {
        let text = fs::read_to_string(&path).unwrap();
        let fences = text.lines().map(str::trim_start).filter_map(|line| {
            line.strip_prefix("/// ```").or_else(|| line.strip_prefix("//! ```"))
        });
        for language in fences.step_by(2) {
            assert!(!language.is_empty(), "{}: name its language, as in ```text", path.display());
        }
    }
}

/// The pages that people read.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages: Vec<PathBuf> = Vec::new();
    for folder in [
        "",
        "docs",
        "docs/grafana",
        "docs/measurements",
        "docs/studies",
        "studies",
        "python",
        "extension/pg_governor",
    ] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        pages.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    pages
}

/// The name that a heading has in an address.
fn anchor(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let is_there =
                target.exists() && (heading.is_empty() || anchors(&target).contains(heading));
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Ten questions of a database administrator: at most three clicks from the README, the heading included.
#[test]
fn ten_questions_have_an_answer_three_clicks_from_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 100, "it is read before a first run");
    let clicks = clicks();
    for (question, address, word) in [
        ("which metrics", "studies/README.md#claims-and-answer", "metrics"),
        ("my HA manager", "docs/ha-manager.md#another-manager", "machine"),
        ("RDS", "docs/target.md#managed-services", "endpoint"),
        ("keep data", "docs/compare.md#your-data", "--keep-data"),
        ("size of a record", "docs/dba.md#the-size-of-a-record", "MB"),
        ("Grafana", "docs/grafana/README.md#dashboards-for-grafana", "Import"),
        ("upgrade with my dump", "docs/upgrade.md#before-an-upgrade", "shop.dump"),
        ("replay", "docs/dba.md#replaying-production", "pg_stat_statements"),
        ("does it touch my tables", "docs/target.md#what-pgrig-does-there", "schema `pgrig`"),
        ("exit codes", "docs/commands.md#exit-codes", "130"),
    ] {
        let (file, heading) = address.split_once('#').unwrap();
        let page = root().join(file).canonicalize().unwrap();
        let text = fs::read_to_string(&page).unwrap();
        let mut below = text.lines().skip_while(|line| {
            !line.starts_with('#') || anchor(line.trim_start_matches('#')) != heading
        });
        let level = below.next().unwrap_or_else(|| panic!("{address}")).split(' ').next();
        let mut answer = below.take_while(|line| line.split(' ').next() != level);
        assert!(answer.any(|line| line.contains(word)), "{question}: {address} has no {word}");
        let clicks = clicks.get(&(page, heading.to_owned()));
        assert!(clicks.is_some_and(|clicks| *clicks <= 3), "{question}: {clicks:?}");
    }
}

/// How many links lead from the README to each place, by the shortest way.
fn clicks() -> BTreeMap<(PathBuf, String), u32> {
    let start = root().join("README.md").canonicalize().unwrap();
    let mut found = BTreeMap::new();
    let mut read = BTreeSet::from([start.clone()]);
    let mut left = VecDeque::from([(start, 0)]);
    while let Some((page, clicks)) = left.pop_front() {
        let text = fs::read_to_string(&page).unwrap_or_default();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let Ok(target) = target.canonicalize() else { continue };
            found.entry((target.clone(), heading.to_owned())).or_insert(clicks + 1);
            if target.extension().is_some_and(|end| end == "md") && read.insert(target.clone()) {
                left.push_back((target, clicks + 1));
            }
        }
    }
    found
}

/// The site has the pages that `docs/SUMMARY.md` lists.
#[test]
fn every_page_has_a_place_in_the_site() {
    let root = root();
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let listed = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let listed: BTreeSet<PathBuf> =
        listed.map(|link| root.join("docs").join(link).canonicalize().unwrap()).collect();
    let pages = pages().into_iter().map(|page| page.canonicalize().unwrap());
    let unlisted: Vec<PathBuf> =
        pages.filter(|page| !listed.contains(page) && !page.ends_with("docs/SUMMARY.md")).collect();
    assert!(unlisted.is_empty(), "not in docs/SUMMARY.md: {unlisted:#?}");
}

#[test]
fn the_files_of_typical_changes_are_there() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    assert!(page.lines().count() <= 80, "it is read before a first change");
    let table = page.split("\n## Typical changes").nth(1).expect("a section on changes");
    let table = table.split("\n## ").next().unwrap();
    let mut n = 0;
    for name in table.split('`').skip(1).step_by(2).filter(|name| name.contains('.')) {
        assert!(root().join(name).exists(), "{name}");
        n += 1;
    }
    assert!(n >= 12, "{n} files");
}

/// A change that the page shows by an example touches no other source than the example has: the files that
/// name it, and those that list its file.
#[test]
fn typical_changes_touch_the_files_that_are_listed() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut n = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let mut names = row.split('`').skip(1).step_by(2);
        let Some(example) = names.next().filter(|name| name.contains("::")) else { continue };
        let listed: BTreeSet<PathBuf> = names.map(|name| root().join(name)).collect();
        for path in all_files() {
            let is_source = path.components().any(|part| part.as_os_str() == "src");
            let names_it = || fs::read_to_string(&path).unwrap().contains(example);
            assert!(!is_source || !names_it() || listed.contains(&path), "{example}: {path:?}");
        }
        n += 1;
    }
    assert_eq!(n, 2, "an action and a check");
}

/// The manual's lists of what a ledger assumes and does not look at are the code's.
#[test]
fn the_page_of_the_ledger_has_the_lists_of_the_code() {
    let page = fs::read_to_string(root().join("docs/ledger.md")).unwrap();
    let check = |heading: &str, expected: &[&str]| {
        let (_, section) = page.split_once(heading).expect(heading);
        let section = section.split("\n## ").next().unwrap_or_default();
        let items: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(items, expected, "{heading}");
    };
    check("## What it assumes\n", &record::ledger::ASSUMES);
    check("## What it never looks at\n", &record::ledger::NEVER_LOOKS_AT);
}

/// The file of a campaign only grows: each line is a load, and no load of a disk is in it twice.
#[test]
fn the_file_of_explored_loads_has_each_load_once() {
    let text = fs::read_to_string(root().join("docs/measurements/states.tsv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("postgresql\tdisk\tseed\tstates\tfailed\tseconds"));
    let mut loads = BTreeSet::new();
    for line in lines {
        let words: Vec<&str> = line.split('\t').collect();
        let [version, disk, seed, states, failed, seconds] = words[..] else { panic!("{line}") };
        let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        assert!(number(states) > 0 && number(seconds) > 0, "{line}");
        assert!(number(failed) <= number(states), "{line}");
        assert!(loads.insert((disk, number(seed))), "twice: {line}");
    }
    assert!(!loads.is_empty());
}

/// The pages for users: what measures a day and changelogs left out.
fn user_pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages = vec![root.join("README.md"), root.join("extension/pg_governor/README.md")];
    pages.extend(["studies", "python"].map(|folder| root.join(folder).join("README.md")));
    for folder in ["docs", "docs/studies", "docs/questions", "docs/grafana"] {
        pages.extend(entries(&root.join(folder)));
    }
    pages.extend(entries(&root.join("tools")).into_iter().map(|tool| tool.join("README.md")));
    let is_page = |page: &PathBuf| page.extension().is_some_and(|end| end == "md") && page.exists();
    pages.retain(is_page);
    pages
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// True of a text with a day such as 2026-11-29, or with a month of a year such as November 2026.
fn has_a_day(text: &str) -> bool {
    let is_day = text.as_bytes().windows(10).any(|word| {
        word.iter().enumerate().all(|(place, byte)| match place {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    });
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_year = |word: &str| word.len() == 4 && word.chars().all(|c| c.is_ascii_digit());
    is_day
        || words.windows(2).any(|pair| {
            MONTHS.iter().any(|month| pair[0] == *month || pair[0] == &month[..3])
                && is_year(pair[1])
        })
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Words for what a machine was doing on the day of a measurement.
const STATES: [&str; 6] =
    ["load average", "busy machine", "quiet machine", "busy cores", "quiet cpus", "cores here"];

/// True of "a load of 8".
fn has_a_load(text: &str) -> bool {
    text.split("load of ").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Words for one machine, in small letters.
const MACHINES: [&str; 10] =
    ["xeon", "epyc", "ryzen", "graviton", "opteron", "core i", "ghz", "vcpu", "ec2", "hetzner"];

/// Pages that have one of [`STATES`], each with the reason.
const ALLOWED_STATES: [(&str, &str); 1] =
    [("docs/studies/pgbench.md", "the source prints its load average, and the study repeats it")];

/// Figures of a day lie below docs/measurements, with their machine.
#[test]
fn pages_for_users_have_no_day_no_machine_and_no_load_of_one() {
    let check = |text: &str, expected: bool| assert_eq!(has_a_day(text), expected, "{text}");
    check("on 2026-11-29, quick", true);
    check("as in November 2026", true);
    check("since Aug 2026.", true);
    check("20151220_01.md, 0 to 5, 1-2-3", false);
    check("published in 2011; may 2011 be", false);
    assert!(has_a_load("(a load of 8 to 13)") && !has_a_load("a load of your own"));
    let root = root();
    let pages = user_pages();
    assert!(pages.len() >= 30, "{} pages", pages.len());
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let is_allowed = ALLOWED_STATES.iter().any(|(name, _)| page == root.join(name));
        for (index, line) in text.lines().enumerate() {
            let small = line.to_lowercase();
            let has = |words: &[&str]| words.iter().any(|word| small.contains(word));
            if has_a_day(line) || has(&MACHINES) || has_a_load(line) || has(&STATES) && !is_allowed
            {
                found.push(format!("{}:{}: {line}", page.display(), index + 1));
            }
        }
    }
    assert!(found.is_empty(), "belongs below docs/measurements: {found:#?}");
}

/// At most this many words are on the pages of the manual.
const WORDS_MAX: usize = 30_000;

/// Words of the README, docs/ and docs/studies/: what has a letter or a digit between blanks. Blocks of commands and
/// of what they print are left out.
#[test]
fn the_manual_can_be_read() {
    let count = |text: &str| {
        let prose = text.split("```").step_by(2);
        let words = prose.flat_map(str::split_whitespace);
        words.filter(|word| word.contains(char::is_alphanumeric)).count()
    };
    assert_eq!(count("| `a b` | – | 1.5 × c |\n```sh\nls -l\n```\nd\n"), 5);
    let mut pages = manual();
    pages.push(root().join("README.md"));
    let read = |page: &PathBuf| fs::read_to_string(page).unwrap();
    let mut words: Vec<(usize, PathBuf)> =
        pages.into_iter().map(|page| (count(&read(&page)), page)).collect();
    words.sort_by(|a, b| b.cmp(a));
    let all: usize = words.iter().map(|(count, _)| count).sum();
    assert!(all <= WORDS_MAX, "{all} words; the longest: {:#?}", &words[..5]);
}

/// The pages of the manual, without the README.
fn manual() -> Vec<PathBuf> {
    let folders = ["docs", "docs/studies"].map(|folder| root().join(folder));
    let mut pages: Vec<PathBuf> = folders.iter().flat_map(|folder| entries(folder)).collect();
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    pages
}

/// A page begins with what it is for, and ends with what comes next.
#[test]
fn a_page_begins_with_its_purpose_and_ends_with_what_comes_next() {
    let mut faults = Vec::new();
    for page in manual().iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let text = fs::read_to_string(page).unwrap();
        let parts: Vec<&str> = text.trim_end().split("\n\n").collect();
        let says = ["This page", "This tutorial", "**Question.**"];
        if !says.iter().any(|words| parts.get(1).is_some_and(|part| part.contains(words))) {
            faults.push(format!("{}: begin with \"This page …\"", page.display()));
        }
        if !parts.last().is_some_and(|part| part.starts_with("Next: ")) {
            faults.push(format!("{}: end with \"Next: …\"", page.display()));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The site's search looks for the words of a question on each page.
#[test]
fn a_search_finds_what_people_look_for() {
    let words = |text: &str| -> BTreeSet<String> {
        text.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let pages: Vec<BTreeSet<String>> =
        manual().iter().map(|page| words(&fs::read_to_string(page).unwrap())).collect();
    for question in [
        "xmin",
        "bloat",
        "collation",
        "pool size",
        "RDS",
        "upgrade",
        "alternative pgbench",
        "HA manager",
        "prove restore",
        "how many clients",
        "reconnect storms",
        "dead rows",
    ] {
        let asked = words(question);
        assert!(pages.iter().any(|page| asked.is_subset(page)), "no page has {question:?}");
    }
}
