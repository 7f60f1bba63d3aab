//! The PL/Proxy cluster by SQL/MED: a foreign server whose options are the partitions, and a user
//! mapping that holds the role and the password.
//!
//! A node's number is its partition's. PL/Proxy wants a power of two of them, so those that no
//! node has repeat the nodes that there are; PL/Proxy keeps one connection for equal strings, and
//! asks each once when all are asked.
//!
//! Every role can read a server's options; a mapping's are for its owner and for superusers. PL/Proxy
//! takes the mapping for each partition that names no user itself, so there is one role and one
//! password for all partitions that need a password.

use std::collections::BTreeMap;

use server::Client;
use server::SplitConninfo;

use crate::error::Error;
use crate::routines::SERVER;
use crate::text::literal;

type Options = BTreeMap<String, String>;

/// Definitions that the proxy's catalog shall have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WantedDefinitions {
    partitions: Vec<String>,
    credentials: Options,
}

impl WantedDefinitions {
    /// The partitions of these routes, and the role and password of those that have a password.
    ///
    /// # Errors
    /// [`Error::Refused`] for a route that cannot be read, and for routes that do not agree on one
    /// role and password.
    pub(crate) fn new(routes: &BTreeMap<i32, String>) -> Result<Self, Error> {
        let mut split = BTreeMap::new();
        for (number, route) in routes {
            let route = SplitConninfo::of(route).map_err(|_| unreadable(*number))?;
            if route.key_password.is_some() {
                return Err(readable(*number));
            }
            split.insert(*number, route);
        }
        let mut secret: Option<(i32, &SplitConninfo)> = None;
        for (number, route) in &split {
            match secret {
                _ if route.password.is_none() => {}
                None => secret = Some((*number, route)),
                Some((first, known)) => {
                    if (&known.user, &known.password) != (&route.user, &route.password) {
                        return Err(differ(first, *number));
                    }
                }
            }
        }
        let mut credentials = Options::new();
        let mut put = |name: &str, value: &Option<String>| {
            credentials.extend(value.iter().map(|value| (name.to_owned(), value.clone())));
        };
        if let Some((first, secret)) = secret {
            put("user", &secret.user);
            put("password", &secret.password.as_ref().map(|one| one.reveal().to_owned()));
            // PL/Proxy would send the password of the others there.
            let nameless = |route: &SplitConninfo| route.password.is_none() && route.user.is_none();
            if let Some((number, _)) = split.iter().find(|(_, route)| nameless(route)) {
                return Err(differ(first, *number));
            }
        }
        let places: BTreeMap<i32, String> = split
            .iter()
            .map(|(number, route)| match route.password {
                Some(_) => (*number, route.place.clone()),
                None => (*number, route.without_password()),
            })
            .collect();
        Ok(Self { partitions: partitions(&places), credentials })
    }

    fn options(&self) -> Options {
        let numbered = self.partitions.iter().enumerate();
        numbered.map(|(slot, place)| (format!("p{slot}"), place.clone())).collect()
    }
}

/// Definitions that the proxy's catalog has now.
#[derive(Debug, Default)]
pub(crate) struct DefinedDefinitions {
    server: Option<Options>,
    mapping: Option<Options>,
}

impl DefinedDefinitions {
    pub(crate) fn read(proxy: &mut Client) -> Result<Self, postgres::Error> {
        let mut options = |query: &str| -> Result<Option<Options>, postgres::Error> {
            let rows = proxy.query(query, &[])?;
            if rows.is_empty() {
                return Ok(None);
            }
            let pairs =
                rows.iter().filter_map(|row| Some((row.get::<_, Option<_>>(0)?, row.get(1))));
            Ok(Some(pairs.collect()))
        };
        Ok(Self { server: options(SERVER_OPTIONS)?, mapping: options(MAPPING_OPTIONS)? })
    }

    /// SQL that makes the catalog say what it shall; options that are not the cluster's stay.
    pub(crate) fn become_sql(&self, wanted: &WantedDefinitions) -> String {
        let own = |(name, value): (&String, &String)| {
            is_partition(name).then(|| (name.clone(), value.clone()))
        };
        let server = self.server.as_ref().map(|all| all.iter().filter_map(own).collect());
        let mut sql = statement(
            &format!("CREATE SERVER {SERVER} FOREIGN DATA WRAPPER plproxy"),
            &format!("ALTER SERVER {SERVER}"),
            server.as_ref(),
            &wanted.options(),
        );
        sql.push_str(&statement(
            &format!("CREATE USER MAPPING FOR PUBLIC SERVER {SERVER}"),
            &format!("ALTER USER MAPPING FOR PUBLIC SERVER {SERVER}"),
            self.mapping.as_ref(),
            &wanted.credentials,
        ));
        sql
    }
}

/// The statement that gives something its options: it is created, altered, or left as it is.
fn statement(create: &str, alter: &str, old: Option<&Options>, new: &Options) -> String {
    let given = |verb: &str, name: &str, value: &str| format!("{verb}{name} {}", literal(value));
    let options: Vec<String> = match old {
        None => new.iter().map(|(name, value)| given("", name, value)).collect(),
        Some(old) => {
            let changed = new.iter().filter_map(|(name, value)| match old.get(name) {
                Some(same) if same == value => None,
                Some(_) => Some(given("SET ", name, value)),
                None => Some(given("ADD ", name, value)),
            });
            let gone = old.keys().filter(|name| !new.contains_key(*name));
            changed.chain(gone.map(|name| format!("DROP {name}"))).collect()
        }
    };
    match (old, options.is_empty()) {
        (None, true) => format!("{create};\n"),
        (None, false) => format!("{create} OPTIONS ({});\n", options.join(", ")),
        (Some(_), true) => String::new(),
        (Some(_), false) => format!("{alter} OPTIONS ({});\n", options.join(", ")),
    }
}

fn is_partition(name: &str) -> bool {
    let Some(number) = name.strip_prefix('p') else { return false };
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The partitions' connection strings, by partition.
fn partitions(routes: &BTreeMap<i32, String>) -> Vec<String> {
    let Some(last) = routes.keys().max() else { return Vec::new() };
    let count =
        usize::try_from(last + 1).expect("the first node has the number 0").next_power_of_two();
    let mut others = routes.values().cycle();
    let slots = (0..).take(count).map(|slot| routes.get(&slot).or_else(|| others.next()));
    slots.flatten().cloned().collect()
}

fn unreadable(number: i32) -> Error {
    Error::Refused {
        what: format!("the proxy's route to node {number} is no connection string"),
        hint: "write it like \"host=db1 port=5432 user=app dbname=shop\"".into(),
    }
}

fn readable(number: i32) -> Error {
    Error::Refused {
        what: format!(
            "the proxy's route to node {number} has an sslpassword, which every role of the proxy \
             could read"
        ),
        hint: "give the node a --route without it: with a private key that is not encrypted and \
               that only the proxy's server can read; of an existing cluster, UPDATE \
               pgrig_shard.node SET route = … on the proxy"
            .into(),
    }
}

fn differ(first: i32, second: i32) -> Error {
    Error::Refused {
        what: format!(
            "the proxy's routes to node {first} and node {second} need different roles or \
             passwords, and PL/Proxy has one of each that other roles cannot read"
        ),
        hint: "give every node a --route with the same user and password, or leave passwords out \
               and write them into the password file (.pgpass) of the proxy's server; of an \
               existing cluster, UPDATE pgrig_shard.node SET route = … on the proxy"
            .into(),
    }
}

const SERVER_OPTIONS: &str = "
    SELECT option_name, option_value FROM pg_foreign_server
    LEFT JOIN LATERAL pg_options_to_table(srvoptions) ON true
    WHERE srvname = 'pgrig_shard'";

const MAPPING_OPTIONS: &str = "
    SELECT option_name, option_value FROM pg_user_mappings
    LEFT JOIN LATERAL pg_options_to_table(umoptions) ON true
    WHERE srvname = 'pgrig_shard' AND umuser = 0";

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(numbers: &[i32]) -> BTreeMap<i32, String> {
        numbers.iter().map(|number| (*number, format!("host=n{number}"))).collect()
    }

    fn given(routes: &[&str]) -> BTreeMap<i32, String> {
        (0..).zip(routes.iter().map(|route| (*route).to_owned())).collect()
    }

    #[test]
    fn partitions_are_a_power_of_two_and_every_node_has_its_own() {
        let check = |numbers: &[i32], expected: &str| {
            let text = partitions(&routes(numbers)).join(" ").replace("host=", "");
            assert_eq!(text, expected);
        };
        check(&[0], "n0");
        check(&[0, 1, 2], "n0 n1 n2 n0");
        check(&[0, 2], "n0 n0 n2 n2");
        check(&[1], "n1 n1");
        check(&[0, 1, 2, 3, 4], "n0 n1 n2 n3 n4 n0 n1 n2");
    }

    #[test]
    fn only_what_differs_is_altered_in_one_statement() {
        let three = WantedDefinitions::new(&routes(&[0, 1, 2])).unwrap();
        let sql = DefinedDefinitions::default().become_sql(&three);
        assert_eq!(
            sql,
            "CREATE SERVER pgrig_shard FOREIGN DATA WRAPPER plproxy OPTIONS (p0 'host=n0', \
             p1 'host=n1', p2 'host=n2', p3 'host=n0');\n\
             CREATE USER MAPPING FOR PUBLIC SERVER pgrig_shard;\n"
        );
        let now = |routes: &[i32]| {
            let mut server = WantedDefinitions::new(&self::routes(routes)).unwrap().options();
            server.insert("connection_lifetime".into(), "60".into());
            DefinedDefinitions { server: Some(server), mapping: Some(Options::new()) }
        };
        let sql = now(&[0, 3]).become_sql(&three);
        let expected = "ALTER SERVER pgrig_shard OPTIONS \
                        (SET p1 'host=n1', SET p2 'host=n2', SET p3 'host=n0');\n";
        assert_eq!(sql, expected);
        let sql = now(&[0, 1, 2]).become_sql(&WantedDefinitions::new(&routes(&[0, 1])).unwrap());
        assert_eq!(sql, "ALTER SERVER pgrig_shard OPTIONS (DROP p2, DROP p3);\n");
        assert_eq!(now(&[0, 1, 2]).become_sql(&three), "");
    }

    #[test]
    fn passwords_go_into_the_mapping() {
        let check = |routes: &[&str], partitions: &[&str], user: Option<&str>, password| {
            let wanted = WantedDefinitions::new(&given(routes)).unwrap();
            assert_eq!(wanted.partitions, partitions, "{routes:?}");
            let credential = |name| wanted.credentials.get(name).map(String::as_str);
            assert_eq!((credential("user"), credential("password")), (user, password));
        };
        let both = ["host=a user=u password=p", "postgres://u:p@b"];
        check(&both, &["host=a", "host=b"], Some("u"), Some("p"));
        check(&["host=a password=p"], &["host=a"], None, Some("p"));
        // Without a password nothing is secret, and each node may have a role of its own.
        check(&["host=a user=u", "host=b user=v"], &["host=a user=u", "host=b user=v"], None, None);
        let mixed = ["host=a user=u", "host=b user=v password=p"];
        check(&mixed, &["host=a user=u", "host=b"], Some("v"), Some("p"));
    }

    #[test]
    fn routes_that_one_mapping_cannot_serve_are_refused_without_their_passwords() {
        let check = |routes: &[&str], expected: &str| {
            let error = WantedDefinitions::new(&given(routes)).unwrap_err();
            let text = format!("{error} {:?}", error.hint());
            assert!(text.contains(expected) && !text.contains("secret"), "{text}");
        };
        let differ = "routes to node 0 and node 1 need different roles";
        check(&["host=a user=u password=secret", "host=b user=u password=secret2"], differ);
        check(&["host=a user=u password=secret", "host=b user=v password=secret"], differ);
        check(&["host=a user=u password=secret", "host=b"], differ);
        check(&["postgres://u:secret@[a"], "route to node 0 is no connection string");
        let readable = "route to node 1 has an sslpassword";
        check(&["host=a", "host=b sslkey=k sslpassword=secret"], readable);
        check(&["host=a secret"], "route to node 0 is no connection string");
    }
}
