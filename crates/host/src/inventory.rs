//! The inventory: a TOML file that says which hosts there are and what runs where.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

/// The hosts of an inventory, by name, and what is placed on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Every host, in alphabetical order of the tables of the file; the hosts of one table in the
    /// order of their numbers.
    pub hosts: Vec<HostEntry>,
    /// Names of nodes, or `generators`, and the hosts (as positions in `hosts`) that have them.
    pub place: BTreeMap<String, Vec<usize>>,
    /// True if connections to servers on the hosts are encrypted.
    pub tls: bool,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its name: that of its table, with a number where the table stands for several.
    pub name: String,
    /// The launcher's words; empty for this machine.
    pub launch: Vec<String>,
    /// Address at which the other hosts reach it.
    pub address: Option<String>,
    /// Its share of the clients, relative to the others'.
    pub weight: u32,
    /// Name of the pgrig program there.
    pub program: String,
    /// Longest wait for its launcher's answer.
    pub timeout: Duration,
}

/// Error in an inventory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("reading the inventory {path}: {why}")]
pub struct InventoryError {
    /// The file.
    pub path: String,
    /// The error, with its position if the parser knows it.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tls: bool,
    hosts: BTreeMap<String, Table>,
    #[serde(default)]
    place: BTreeMap<String, OneOrSeveral>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    launch: String,
    count: Option<u32>,
    address: Option<String>,
    weight: Option<u32>,
    program: Option<String>,
    timeout: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    One(String),
    Several(Vec<String>),
}

const TIMEOUT: Duration = Duration::from_secs(30);
const COUNT_MAX: u32 = 10_000;

impl Inventory {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Inventory, InventoryError> {
        let failed = |why: String| InventoryError { path: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Inventory::parse(&text).map_err(failed)
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Inventory, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut hosts = Vec::new();
        let mut tables = BTreeMap::new();
        for (name, table) in &file.hosts {
            let first = hosts.len();
            hosts.extend(expand(name, table).map_err(|why| format!("[hosts.{name}]: {why}"))?);
            tables.insert(name.as_str(), (first..hosts.len()).collect::<Vec<_>>());
        }
        if hosts.is_empty() {
            return Err("it names no host".to_owned());
        }
        let mut names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two hosts are called {}", twice[0]));
        }
        let mut place = BTreeMap::new();
        for (node, wanted) in &file.place {
            let wanted = match wanted {
                OneOrSeveral::One(name) => std::slice::from_ref(name),
                OneOrSeveral::Several(names) => &names[..],
            };
            let mut chosen = Vec::new();
            for name in wanted {
                let one = hosts.iter().position(|host| host.name == *name).map(|at| vec![at]);
                let Some(found) = tables.get(name.as_str()).cloned().or(one) else {
                    let known: Vec<&str> = tables.keys().copied().collect();
                    let known = known.join(", ");
                    return Err(format!("[place] {node} = \"{name}\": the hosts are {known}"));
                };
                chosen.extend(found);
            }
            chosen.sort_unstable();
            chosen.dedup();
            place.insert(node.clone(), chosen);
        }
        Ok(Inventory { hosts, place, tls: file.tls })
    }

    /// The hosts that generate load: those of `generators` under `[place]`, or all.
    pub fn generators(&self) -> Vec<HostEntry> {
        match self.place.get("generators") {
            Some(chosen) => chosen.iter().map(|at| self.hosts[*at].clone()).collect(),
            None => self.hosts.clone(),
        }
    }
}

/// The hosts that a table stands for.
fn expand(name: &str, table: &Table) -> Result<Vec<HostEntry>, String> {
    let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(usable) {
        return Err("a host's name has letters, digits, - _ and . only".to_owned());
    }
    let mut count = table.count;
    let mut counted_by = "count";
    let texts = [("launch", Some(table.launch.as_str())), ("address", table.address.as_deref())];
    for (field, text) in texts {
        let Some((_, first, last)) = text.map(range).transpose()?.flatten() else { continue };
        let length = last - first + 1;
        if let Some(other) = count.filter(|count| *count != length) {
            return Err(format!(
                "{field} has {{{first}..{last}}}, which are {length} hosts, and {counted_by} gives {other}"
            ));
        }
        (count, counted_by) = (Some(length), field);
    }
    if count.is_some_and(|count| count == 0 || count > COUNT_MAX) {
        return Err(format!("count is from 1 to {COUNT_MAX}"));
    }
    if table.weight == Some(0) {
        return Err("weight is 1 or more".to_owned());
    }
    let timeout = table.timeout.as_deref().map_or(Ok(TIMEOUT), duration)?;
    let numbered = count.is_some();
    let entry = |index: u32| {
        let launch = nth(&table.launch, index);
        let launch = shlex::split(&launch).ok_or("launch: a quote is not closed")?;
        Ok(HostEntry {
            name: if numbered { format!("{name}{}", index + 1) } else { name.to_owned() },
            launch,
            address: table.address.as_deref().map(|address| nth(address, index)),
            weight: table.weight.unwrap_or(1),
            program: table.program.clone().unwrap_or_else(|| "pgrig".to_owned()),
            timeout,
        })
    };
    (0..count.unwrap_or(1)).map(entry).collect()
}

/// The first `{A..B}` of a text: where it stands, and its numbers.
fn range(text: &str) -> Result<Option<(std::ops::Range<usize>, u32, u32)>, String> {
    let Some(open) = text.find('{') else { return Ok(None) };
    let Some(length) = text[open..].find('}') else { return Ok(None) };
    let inside = &text[open + 1..open + length];
    let Some((first, last)) = inside.split_once("..") else { return Ok(None) };
    let number = |digits: &str| digits.parse::<u32>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last && last - first < COUNT_MAX => {
            Ok(Some((open..open + length + 1, first, last)))
        }
        _ => Err(format!("{{{inside}}} is no range such as {{1..4}}")),
    }
}

/// The text with every `{A..B}` replaced by its number at `index`.
fn nth(text: &str, index: u32) -> String {
    let mut text = text.to_owned();
    while let Ok(Some((place, first, last))) = range(&text) {
        text.replace_range(place, &(first + index).min(last).to_string());
    }
    text
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong(text))?;
    let seconds = match &text[digits.len()..] {
        "s" => number,
        "min" => number.saturating_mul(60),
        "h" => number.saturating_mul(3600),
        _ => return Err(wrong(text)),
    };
    match seconds {
        1..=86_400 => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong(text)),
    }
}

fn wrong(text: &str) -> String {
    format!("timeout \"{text}\": expected 1 s to 24 h, as in 30s or 5min")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_names_hosts_one_by_one_and_in_ranges() {
        let text = r#"
            [hosts.db1]
            launch = "ssh -p 2222 db1"
            address = "10.0.0.11"
            [hosts.here]
            weight = 3
            [hosts.load]
            launch = "srun -w 'load{1..3}'"
            count = 3
            address = "10.0.1.{1..3}"
            program = "/opt/pgrig"
            timeout = "5min"
            [place]
            primary = "db1"
            generators = ["load", "here"]
        "#;
        let inventory = Inventory::parse(text).unwrap();
        let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["db1", "here", "load1", "load2", "load3"]);
        let third = &inventory.hosts[4];
        assert_eq!(third.launch, ["srun", "-w", "load3"]);
        assert_eq!(third.address.as_deref(), Some("10.0.1.3"));
        assert_eq!((third.program.as_str(), third.timeout.as_secs()), ("/opt/pgrig", 300));
        let here = &inventory.hosts[1];
        assert_eq!((here.launch.len(), here.weight, here.program.as_str()), (0, 3, "pgrig"));
        let generators: Vec<String> =
            inventory.generators().into_iter().map(|host| host.name).collect();
        assert_eq!(generators, ["here", "load1", "load2", "load3"]);
        assert_eq!(inventory.place["primary"], [0]);
        let all = Inventory::parse("[hosts.a]\n[hosts.b]\n").unwrap();
        assert_eq!(all.generators().len(), 2, "without a place every host generates load");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let check = |text: &str, expected: &str| {
            let why = Inventory::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        };
        check("", "missing field `hosts`");
        check("[hosts]", "it names no host");
        check("[hosts.a]\nlunch = \"ssh\"", "unknown field `lunch`");
        check("[hosts.a]\nweight = 0", "[hosts.a]: weight is 1 or more");
        check("[hosts.a]\ncount = 0", "count is from 1 to");
        check(
            "[hosts.a]\nlaunch = \"ssh a{1..3}\"\ncount = 2",
            "{1..3}, which are 3 hosts, and count gives 2",
        );
        check(
            "[hosts.a]\nlaunch = \"ssh a{1..3}\"\naddress = \"10.0.0.{1..2}\"",
            "address has {1..2}, which are 2 hosts, and launch gives 3",
        );
        check("[hosts.a]\nlaunch = \"ssh a{3..1}\"", "{3..1} is no range");
        check("[hosts.a]\nlaunch = \"ssh 'a\"", "a quote is not closed");
        check("[hosts.a]\ntimeout = \"soon\"", "expected 1 s to 24 h");
        check("[hosts.\"a b\"]", "letters, digits");
        check("[hosts.a]\ncount = 1\n[hosts.a1]", "two hosts are called a1");
        check("[hosts.a]\n[place]\nprimary = \"b\"", "primary = \"b\": the hosts are a");
    }
}
