//! The names that the texts of machines use: addresses, directories, ports, a password.

use std::collections::BTreeMap;

use lab::{Endpoint, Host};
use spec::VariableValues;

use crate::node::SiteNode;

/// Names and what they stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Has `{OF.WHAT}` stand for a value.
    pub(crate) fn set(&mut self, of: &str, what: &str, value: impl Into<String>) {
        self.0.insert(format!("{of}.{what}"), value.into());
    }

    /// The names of servers that the rig starts: where each is, and as whom to go there.
    pub(crate) fn of_servers<'n>(servers: impl Iterator<Item = (&'n str, Endpoint)>) -> Names {
        let mut names = Names::default();
        for (name, to) in servers {
            names.set(name, "name", name);
            let address = match to.host {
                Host::Unix(directory) => directory.display().to_string(),
                Host::Tcp(address) => address,
            };
            names.set(name, "address", address);
            names.set(name, "port", to.port.to_string());
            names.set(name, "user", to.user);
            names.set(name, "database", to.database);
            // A server that asks for none has none.
            let password = to.password.as_ref().map_or("", |password| password.reveal());
            names.set(name, "password", password);
        }
        names
    }

    /// Adds what servers have on disk, and the slots of standbys: data directories, programs, archives.
    pub(crate) fn add_places<'n>(&mut self, nodes: impl Iterator<Item = &'n SiteNode>) {
        for node in nodes {
            let lab::Server::Node(server) = &node.server else { continue };
            self.set(&node.name, "data", server.data().display().to_string());
            self.set(&node.name, "bin", server.installation().bin().display().to_string());
            self.set(&node.name, "slot", server.slot());
            if let Ok(archive) = server.archive_directory() {
                self.set(&node.name, "archive", archive.display().to_string());
            }
        }
    }

    /// The same names, with `{self.WHAT}` for what is a node's, and the node's variables.
    pub(crate) fn of(&self, node: &str, variables: &VariableValues) -> Names {
        let own = self.0.iter().filter_map(|(name, value)| {
            let what = name.strip_prefix(node)?.strip_prefix('.')?;
            Some((format!("self.{what}"), value.clone()))
        });
        let variables = variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        Names(self.0.clone().into_iter().chain(own).chain(variables).collect())
    }

    /// The text with every name that is known replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, from)) = rest.split_once('{') {
            out.push_str(before);
            let value = from
                .split_once('}')
                .and_then(|(name, after)| self.0.get(name).map(|value| (value, after)));
            match value {
                Some((value, after)) => {
                    out.push_str(value);
                    rest = after;
                }
                None => {
                    out.push('{');
                    rest = from;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_and_other_braces_stay() {
        let mut names = Names::default();
        names.set("a", "address", "198.19.0.10");
        names.set("b", "address", "198.19.0.11");
        let variables = VariableValues::from([("ttl".to_owned(), "20".to_owned())]);
        let names = names.of("a", &variables);
        let check = |text: &str, expected: &str| assert_eq!(names.fill(text), expected, "{text}");
        check("{self.address}:5432, {b.address}", "198.19.0.10:5432, 198.19.0.11");
        check("ttl: {ttl}", "ttl: 20");
        check("{\"a\": {}} {{ {unknown} {", "{\"a\": {}} {{ {unknown} {");
        check("{{ttl}}", "{20}");
    }
}
