//! Which modules of a crate use each other, level by level.
//!
//! On each level, the modules that stand side by side are compared, each with everything below it. A
//! module and its own parent may use each other: together they are one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module by its path, the crate's root by the empty one.
type Module = Vec<String>;

/// The circles of more than `most` modules in the sources of a crate, each with its members sorted.
pub(crate) fn circles(root: &Path, sources: &[(PathBuf, String)], most: usize) -> Vec<Vec<String>> {
    let modules: BTreeMap<Module, Code> = sources
        .iter()
        .map(|(path, code)| (module_of(path.strip_prefix(root).unwrap()), Code::of(code)))
        .collect();
    let uses = uses(&modules);
    let parents: BTreeSet<&[String]> =
        modules.keys().filter_map(|module| module.split_last()).map(|(_, parent)| parent).collect();
    let mut circles = Vec::new();
    for parent in parents {
        let level = level(parent, &uses);
        let mut seen = BTreeSet::new();
        for module in level.keys() {
            let circle: Vec<String> = reachable(module, &level)
                .into_iter()
                .filter(|other| reachable(other, &level).contains(module))
                .collect();
            if circle.len() > most && seen.insert(circle.clone()) {
                let path = |name: &String| [parent, std::slice::from_ref(name)].concat().join("/");
                circles.push(circle.iter().map(path).collect());
            }
        }
    }
    circles
}

fn module_of(file: &Path) -> Module {
    let file = file.with_extension("");
    let mut parts: Module = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        parts.pop();
    }
    parts
}

/// The paths that a module's code names.
struct Code {
    /// Those of `use`, with the name under which each is known here.
    imported: BTreeMap<String, Vec<String>>,
    all: Vec<Vec<String>>,
}

impl Code {
    fn of(code: &str) -> Code {
        let mut imported = BTreeMap::new();
        let (mut all, mut rest) = (Vec::new(), String::new());
        let mut statement: Option<String> = None;
        for line in code.lines() {
            let text = line.trim();
            let begins = text.strip_prefix("pub ").or_else(|| {
                text.strip_prefix("pub(")
                    .and_then(|text| text.split_once(") "))
                    .map(|(_, text)| text)
            });
            match (&mut statement, begins.unwrap_or(text).strip_prefix("use ")) {
                (Some(open), _) => open.push_str(text),
                (None, Some(tree)) => statement = Some(tree.to_owned()),
                (None, None) => rest.push_str(&format!("{line}\n")),
            }
            if let Some(tree) = statement.take_if(|tree| tree.ends_with(';')) {
                for path in expanded(tree.trim_end_matches(';')) {
                    let (path, name) = match path.split_once(" as ") {
                        Some((path, name)) => (path.to_owned(), name.trim().to_owned()),
                        None => (path.clone(), path.rsplit("::").next().unwrap().to_owned()),
                    };
                    let path: Vec<String> = path.split("::").map(|p| p.trim().to_owned()).collect();
                    all.push(path.clone());
                    imported.insert(name, path);
                }
            }
        }
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for path in rest.split(|c| !word(c)).filter(|path| path.contains("::")) {
            let path = path.trim_matches(':').split("::").map(str::to_owned);
            all.push(path.filter(|part| !part.is_empty()).collect());
        }
        Code { imported, all }
    }
}

/// The paths of a `use` tree.
fn expanded(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, inside)) = tree.split_once('{') else {
        return if tree.is_empty() { Vec::new() } else { vec![tree.to_owned()] };
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    for c in inside.chars() {
        match c {
            ',' if depth == 0 => parts.push(std::mem::take(&mut part)),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                part.push(c);
            }
        }
    }
    parts.push(part);
    let parts = parts.iter().flat_map(|part| expanded(part));
    parts.map(|part| format!("{before}{part}")).collect()
}

/// Which modules each module uses.
fn uses(modules: &BTreeMap<Module, Code>) -> BTreeMap<Module, BTreeSet<Module>> {
    let used = modules.iter().map(|(module, code)| {
        let absolute = code.all.iter().filter_map(|path| absolute(module, path, modules));
        let used = absolute.map(|path| resolved(&path, modules, 0)).filter(|used| used != module);
        (module.clone(), used.collect())
    });
    used.collect()
}

/// A path from the crate's root; none for one that leads out of the crate.
fn absolute(
    module: &[String],
    path: &[String],
    modules: &BTreeMap<Module, Code>,
) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            let above = module.len().checked_sub(ups)?;
            Some([&module[..above], &path[ups..]].concat())
        }
        _ => {
            let child = [module, std::slice::from_ref(first)].concat();
            modules.contains_key(&child).then(|| [module, path].concat())
        }
    }
}

/// The module that a path leads to, through what other modules hand on.
fn resolved(path: &[String], modules: &BTreeMap<Module, Code>, depth: usize) -> Module {
    let is_module = |length: &usize| modules.contains_key(&path[..*length]);
    let length = (0..=path.len()).rev().find(is_module).unwrap_or(0);
    let (module, rest) = path.split_at(length);
    let handed_on = rest.first().and_then(|name| modules.get(module)?.imported.get(name));
    let next = handed_on.and_then(|path| absolute(module, path, modules));
    match next {
        Some(next) if depth < 5 && next != path => {
            resolved(&[next.as_slice(), &rest[1..]].concat(), modules, depth + 1)
        }
        _ => module.to_vec(),
    }
}

/// Which modules below a parent use which others there, each with everything below it.
fn level(
    parent: &[String],
    uses: &BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeMap<String, BTreeSet<String>> {
    let child = |module: &Module| {
        let rest = module.strip_prefix(parent)?;
        rest.first().cloned()
    };
    let mut level: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, used) in uses {
        let Some(name) = child(module) else { continue };
        let used = used.iter().filter_map(child).filter(|other| *other != name);
        level.entry(name.clone()).or_default().extend(used);
    }
    level
}

/// What can be reached from a module, itself included.
fn reachable(from: &str, level: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([from.to_owned()]);
    let mut left = vec![from.to_owned()];
    while let Some(module) = left.pop() {
        for next in level.get(&module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    reached
}

#[test]
fn circles_are_found_through_whatever_hands_names_on() {
    let check = |files: &[(&str, &str)], expected: &[&[&str]]| {
        let sources: Vec<(PathBuf, String)> = files
            .iter()
            .map(|(name, code)| (PathBuf::from(format!("src/{name}.rs")), (*code).to_owned()))
            .collect();
        assert_eq!(circles(Path::new("src"), &sources, 1), expected, "{files:?}");
    };
    check(&[("lib", "mod a;\nmod b;"), ("a", "use crate::b::B;"), ("b", "")], &[]);
    check(&[("a", "use crate::b::B;"), ("b", "fn f() { crate::a::g() }")], &[&["a", "b"]]);
    check(
        &[("lib", "pub use a::A;"), ("a", "use crate::b;"), ("b", "use crate::A;")],
        &[&["a", "b"]],
    );
    // A parent and its children are one thing; children among themselves are not.
    check(&[("a", "use a::b::B;"), ("a/b", "use super::A;")], &[]);
    check(
        &[("a", "pub use b::B;"), ("a/b", "use super::c::{C, D};"), ("a/c", "use crate::a::{B};")],
        &[&["a/b", "a/c"]],
    );
}
