//! A machine, a process, a route: nodes that are made of programs which the study names, and that the
//! rig knows nothing else of.
//!
//! Texts of such a node may say `{NODE.address}`, `{NODE.directory}`, `{NODE.disk}` and `{NODE.port.NAME}`, with `self`
//! for the node itself, `{self.name}`, `{servers.password}`, `{packages.directory}` and
//! `{postgres.bin}`; they are known once the nodes are made. Files may also say `{NAME}` for one of the
//! node's variables.

use terms::EndSignal;

use crate::data::{ScriptText, script_file};
use crate::fields::{Fields, VariableValues};
use crate::folder::StudyFolder;
use crate::problem::Problems;
use crate::value::{KeyValue, Value, is_name};

/// A node that is made of programs which the study names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineNode {
    /// True if it has a network namespace, with an address of its own.
    pub has_network: bool,
    /// The programs, in the order in which they are started.
    pub processes: Vec<MachineProgram>,
    /// The PostgreSQL server that one of its programs starts.
    pub server: Option<ManagedServer>,
    /// The connection string of clients that go there; none where they cannot.
    pub clients: Option<String>,
    /// The condition that must hold before a trial begins.
    pub ready: Option<ReadyCondition>,
    /// Packages of the distribution that it needs.
    pub packages: Vec<String>,
    /// The roles of the ports that it gets.
    pub ports: Vec<String>,
    /// VariableValues that its files call by a name.
    pub variables: VariableValues,
}

/// A program of a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineProgram {
    /// The name on the machine.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The environment.
    pub environment: VariableValues,
    /// The files by their names in its directory, with the texts of the study's.
    pub files: Vec<(String, ScriptText)>,
    /// The condition that holds once it has started.
    pub ready: Option<ReadyCondition>,
    /// The signal that asks it to end.
    pub ends_by: EndSignal,
    /// True if it runs as root.
    pub as_root: bool,
}

/// A PostgreSQL server whose postmaster the rig does not start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManagedServer {
    /// The port on the machine's address.
    pub port: u16,
    /// The data directory, below the machine's disk where it has one of its own, or its directory.
    pub data: String,
    /// The superuser that the rig connects as; the password is `{servers.password}`.
    pub user: String,
    /// The database that holds the data.
    pub database: String,
}

/// A condition that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyCondition {
    /// The condition.
    pub when: ReadyWhen,
    /// Time limit of the wait for it, in milliseconds.
    pub within_ms: u64,
}

/// The kinds of conditions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadyWhen {
    /// Something listens there: `ADDRESS:PORT`.
    Port(String),
    /// A query by the node's clients' way, or on its server, gives true.
    Sql(String),
    /// A GET of this address is answered with a status of 200 to 299.
    Http(String),
    /// The log of the process has a line with this text.
    Log(String),
}

impl MachineProgram {
    /// The name that means the server which a process has started.
    pub const SERVER: &'static str = "server";
}

impl MachineNode {
    /// The texts, in which nodes and what they have are named.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let processes = self.processes.iter();
        processes
            .flat_map(|process| {
                let environment = process.environment.values().map(String::as_str);
                let files = process.files.iter().map(|(_, file)| file.text.as_str());
                let ready = process.ready.as_ref().map(ReadyCondition::text);
                process
                    .command
                    .iter()
                    .map(String::as_str)
                    .chain(environment)
                    .chain(files)
                    .chain(ready)
            })
            .chain(self.clients.as_deref())
            .chain(self.ready.as_ref().map(ReadyCondition::text))
    }

    /// `kind = "machine"`: several programs and an address.
    pub(crate) fn several(fields: &Fields<'_>, folder: &StudyFolder) -> Option<MachineNode> {
        let named = fields.named("processes");
        if named.is_empty() {
            let hint = "add processes.NAME = { command = [\"PROGRAM\", \"ARGUMENT\"] }";
            fields.problems.hinted(fields.span(), "a machine without processes", hint);
        }
        let processes = named.iter().filter_map(|entry| process(entry, folder, fields.problems));
        let processes = processes.collect();
        Some(MachineNode { has_network: true, processes, ..MachineNode::common(fields) })
    }

    /// `kind = "process"`: one program on the loopback.
    pub(crate) fn one(
        name: &str,
        fields: &Fields<'_>,
        folder: &StudyFolder,
    ) -> Option<MachineNode> {
        let process = process_of(name, fields, folder)?;
        let ports = fields.texts("ports").into_iter().map(|(name, _)| name).collect();
        Some(MachineNode { ports, processes: vec![process], ..MachineNode::common(fields) })
    }

    /// `kind = "route"`: a connection string with a name.
    pub(crate) fn route(fields: &Fields<'_>) -> Option<MachineNode> {
        fields.required("clients")?;
        Some(MachineNode::common(fields))
    }

    fn common(fields: &Fields<'_>) -> MachineNode {
        let server = fields.value("server").and_then(|value| server(value, fields.problems));
        // That of a process is the node's own.
        let ready =
            fields.value("ready").and_then(|value| ReadyCondition::parse(value, fields.problems));
        MachineNode {
            has_network: false,
            processes: Vec::new(),
            server,
            clients: fields.text("clients").map(str::to_owned),
            ready,
            packages: packages(fields),
            ports: Vec::new(),
            variables: fields.variables("variables"),
        }
    }
}

/// Names of packages. What apt-get would take for an option would run commands of the study's author.
fn packages(fields: &Fields<'_>) -> Vec<String> {
    let texts = fields.texts("packages").into_iter();
    let names = texts.filter(|(name, span)| {
        let is_package = is_package(name);
        if !is_package {
            let message = format!("\"{name}\" is no name of a package");
            let hint = "name it as Debian does, such as patroni or patroni=3.0-1";
            fields.problems.hinted(span, message, hint);
        }
        is_package
    });
    names.map(|(name, _)| name).collect()
}

/// True for a name as Debian's policy has it, with an architecture, a version or a release or without.
fn is_package(text: &str) -> bool {
    let (name, rest) = text.split_at(text.find([':', '=', '/']).unwrap_or(text.len()));
    let is_of = |text: &str, more: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && is_of(name, "+.-")
        && is_of(rest, "+.-~:=/")
}

fn process(entry: &KeyValue, folder: &StudyFolder, problems: &Problems) -> Option<MachineProgram> {
    if !is_name(&entry.key) || entry.key == MachineProgram::SERVER {
        problems.add(&entry.key_span, format!("\"{}\" cannot be a process", entry.key));
    }
    let fields = Fields::of("a process", &entry.value, problems)?;
    let mut process = process_of(&entry.key, &fields, folder)?;
    process.ready = fields.value("ready").and_then(|value| ReadyCondition::parse(value, problems));
    fields.finish();
    Some(process)
}

fn process_of(name: &str, fields: &Fields<'_>, folder: &StudyFolder) -> Option<MachineProgram> {
    let problems = fields.problems;
    let command = fields.command("command")?;
    let files = fields.named("files").iter().filter_map(|entry| {
        if entry.key.contains('/') || entry.key.starts_with('.') {
            problems
                .add(&entry.key_span, format!("\"{}\" cannot be the name of a file", entry.key));
        }
        Some((entry.key.clone(), script_file(&entry.value, folder, problems)?))
    });
    Some(MachineProgram {
        name: name.to_owned(),
        command,
        files: files.collect(),
        environment: fields.variables("environment"),
        ready: None,
        ends_by: fields.choice("stop", STOPS).unwrap_or(EndSignal::Term),
        as_root: fields.choice("user", USERS).unwrap_or(false),
    })
}

fn server(value: &Value, problems: &Problems) -> Option<ManagedServer> {
    let fields = Fields::of("server", value, problems)?;
    let text = |key, default: &str| fields.text(key).unwrap_or(default).to_owned();
    let server = ManagedServer {
        port: fields.integer("port", 1..=u16::MAX).unwrap_or(PORT_DEFAULT),
        data: text("data", "data"),
        user: text("user", "postgres"),
        database: text("database", "postgres"),
    };
    if server.data.starts_with('/') || server.data.split('/').any(|part| part == "..") {
        let message = "data: the data directory lies below the machine's directory";
        problems.hinted(fields.span(), message, "write data = \"data\"");
    }
    fields.finish();
    Some(server)
}

impl ReadyCondition {
    fn parse(value: &Value, problems: &Problems) -> Option<ReadyCondition> {
        let fields = Fields::of("ready", value, problems)?;
        let text = |key| fields.text(key).map(str::to_owned);
        let found: Vec<ReadyWhen> = [
            text("port").map(ReadyWhen::Port),
            text("sql").map(ReadyWhen::Sql),
            text("http").map(ReadyWhen::Http),
            text("log").map(ReadyWhen::Log),
        ]
        .into_iter()
        .flatten()
        .collect();
        let within_ms = fields.duration_ms("within").unwrap_or(WITHIN_DEFAULT_MS);
        let span = fields.span().clone();
        fields.finish();
        match <[ReadyWhen; 1]>::try_from(found) {
            Ok([when]) => Some(ReadyCondition { when, within_ms }),
            Err(_) => {
                let hint = "write ready = { port = \"{self.address}:5432\" }, or sql, http or log";
                problems.hinted(&span, "ready: one condition", hint);
                None
            }
        }
    }

    fn text(&self) -> &str {
        match &self.when {
            ReadyWhen::Port(text)
            | ReadyWhen::Sql(text)
            | ReadyWhen::Http(text)
            | ReadyWhen::Log(text) => text,
        }
    }
}

/// `{NODE.WORD}` and `{NODE.WORD.WORD}` in a text, without the braces.
pub fn dotted(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (inner, _) = rest.split_once('}')?;
        let mut parts = inner.split('.');
        let is_dotted = inner.contains('.') && parts.all(is_name);
        is_dotted.then_some(inner)
    })
}

const STOPS: &[(&str, EndSignal)] =
    &[("TERM", EndSignal::Term), ("INT", EndSignal::Int), ("QUIT", EndSignal::Quit)];
/// The users by their names in study.toml: true for root.
const USERS: &[(&str, bool)] = &[("server", false), ("root", true)];
const PORT_DEFAULT: u16 = 5432;
/// A cluster of three takes half a minute to form on a busy machine.
const WITHIN_DEFAULT_MS: u64 = 120_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_names_are_found_and_other_braces_are_not() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(dotted(text).collect::<Vec<_>>(), expected, "{text}");
        };
        check("http://{self.address}:8008/{a.port.sql}", &["self.address", "a.port.sql"]);
        check("{ttl} {} {{1,2}} %{+Q}o {\"a.b\": 1} {x.}", &[]);
    }
}
