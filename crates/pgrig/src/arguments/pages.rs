//! The commands that the pages show can be typed: each is parsed, and none is run.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::{described, parse};

/// The pages, with the README.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md"), root.join("studies").join("README.md")];
    for folder in ["docs", "docs/studies", "docs/measurements", "docs/grafana"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of pages");
        let pages = entries.map(|entry| entry.expect("an entry").path());
        found.extend(pages.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

/// The commands of a page: lines of its blocks, and code in its text.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, part) in page.split("```").enumerate() {
        if index % 2 == 0 {
            let spans = part.split('`').skip(1).step_by(2);
            found.extend(spans.map(|span| span.replace('\n', " ")));
            continue;
        }
        let joined = part.replace("\\\n", " ");
        let lines = joined.lines().map(|line| {
            let line = line.trim();
            line.strip_prefix("$ ").unwrap_or(line).to_owned()
        });
        found.extend(lines);
    }
    found.retain(|command| command.starts_with("pgrig "));
    found
}

/// Words as a shell makes them, up to what is no part of the command.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '|' | '>' | ';') if word.is_none() => break,
            (None, '&') => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Why a command cannot be typed as it stands; a placeholder for a user's own words is no fault.
fn fault(words: &[String]) -> Option<String> {
    // A synopsis or a message.
    if words[1] == "help" || words.iter().any(|word| word.starts_with('[') || word.contains('…'))
    {
        return None;
    }
    let described = described();
    let Some(command) = described.find_subcommand(&words[1]) else {
        return Some(format!("there is no command {}", words[1]));
    };
    if words[1] == "bench" {
        let has = |name: &str| command.get_arguments().any(|one| one.get_long() == Some(name));
        let options = words.iter().filter_map(|word| word.strip_prefix("--"));
        let mut names = options.map(|word| word.split('=').next().unwrap_or(word));
        return names
            .find(|name| !name.is_empty() && !has(name))
            .map(|name| format!("no --{name}"));
    }
    // A span may only name a command and options of it.
    let is_place = |word: &str| {
        let bare = word.trim_matches(|c: char| "./:=<>'\"".contains(c));
        bare.is_empty() || bare.chars().any(|c| c.is_ascii_uppercase())
    };
    let names_option = words.last().is_some_and(|word| word.starts_with('-'));
    let error = parse(words).err()?;
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand => None,
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
            if names_option || words.iter().any(|word| is_place(word)) =>
        {
            None
        }
        _ => {
            let text = error.to_string();
            Some(text.lines().next().expect("clap says what it refuses").to_owned())
        }
    }
}

#[test]
fn words_are_those_of_a_shell() {
    let check =
        |command: &str, expected: &[&str]| assert_eq!(words(command), expected, "{command}");
    check("pgrig run a --only 'x/*'  # all", &["pgrig", "run", "a", "--only", "x/*"]);
    check("pgrig man DIR && ls | more", &["pgrig", "man", "DIR"]);
    check("pgrig link a=\"b c\"d > f", &["pgrig", "link", "a=b cd"]);
}

#[test]
fn every_command_of_the_pages_can_be_typed() {
    let (mut n, mut faults) = (0, Vec::new());
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        for command in commands(&page) {
            let words = words(&command);
            if words.len() < 2 {
                continue;
            }
            n += 1;
            if let Some(fault) = fault(&words) {
                faults.push(format!("{}: {command}: {fault}", path.display()));
            }
        }
    }
    assert!(n > 200, "{n} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
