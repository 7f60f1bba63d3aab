//! Building a cluster, and taking nodes in and out of its lists. Rows do not move here.

use std::collections::BTreeMap;

use server::Client;

use crate::cluster::{
    self, Cluster, NodeConfig, NodeRow, connect, lock, node_name, on_node, on_proxy,
};
use crate::error::Error;
use crate::fitness::check_server;
use crate::function::{FUNCTIONS, Function};
use crate::movable::{Template, data_node_sql, listed, try_template, with_mask};
use crate::plan::Batch;
use crate::routines;
use crate::secret;
use crate::servers::WantedDefinitions;
use crate::text::{bucket_schema, literal, template_sql};

impl Cluster {
    /// Makes a cluster: the proxy's schema, and on each node its share of the buckets, made from
    /// the template, in which `{bucket}` stands for the bucket's schema.
    ///
    /// It can be run again after a failure and then goes on with the cluster that was begun. `key` is the name
    /// of the first parameter of those functions that run in one bucket.
    ///
    /// # Errors
    /// [`Error::Refused`] for what cannot be a cluster: no power of two of buckets, no nodes, no
    /// PL/Proxy, a server that is in a cluster already, a table without replica identity.
    pub fn create(
        proxy: &str,
        nodes: &[NodeConfig],
        buckets: i32,
        template: &str,
        key: &str,
    ) -> Result<Self, Error> {
        if !(1..=BUCKETS_MAX).contains(&buckets) || buckets.count_ones() != 1 {
            return Err(Error::Refused {
                what: format!("a cluster cannot have {buckets} buckets"),
                hint: format!("choose a power of two, 128 for example, at most {BUCKETS_MAX}"),
            });
        }
        if nodes.is_empty() {
            return Err(Error::Refused {
                what: "a cluster without nodes has no place for its buckets".into(),
                hint: "name at least one data node".into(),
            });
        }
        // All of them answer and are fit before anything is changed.
        let routes = (0..).zip(nodes).map(|(number, node)| (number, node.route().to_owned()));
        WantedDefinitions::new(&routes.collect())?;
        let mut clients = Vec::new();
        for (number, node) in (0..).zip(nodes) {
            let mut client = connect(&node.conninfo, &node_name(number))?;
            check_server(&mut client, number)?;
            clients.push(client);
        }
        let of_one = Template { sql: template, key, buckets };
        let functions = check_template(&mut clients[0], &of_one)?;
        let names = routines::public_names(&functions);
        for (number, client) in (0..).zip(&mut clients) {
            let taken = taken(client, &names).map_err(|source| on_node(LOOKING, number, source))?;
            refuse_taken(taken, &node_name(number))?;
        }
        drop(clients);
        let mut client = connect(proxy, cluster::PROXY)?;
        let taken = taken(&mut client, &names).map_err(|source| on_proxy(LOOKING, source))?;
        refuse_taken(taken, cluster::PROXY)?;
        lock(&mut client)?;
        begin(&mut client, nodes, &of_one)?;
        cluster::unlock(&mut client)?;
        drop(client);
        // Its nodes are no members yet.
        let mut cluster = Self::take(proxy)?;
        for number in cluster.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            let own = cluster.owned(number);
            cluster.deploy_node(number, cluster.version, &own)?;
        }
        cluster.offer()?;
        Ok(cluster)
    }

    /// Takes a node into the list, without buckets; gives its number. One that is in the list
    /// already stays what it is.
    ///
    /// # Errors
    /// [`Error::Refused`] for a server that cannot be a node or is in another cluster.
    pub fn add(&mut self, node: &NodeConfig) -> Result<i32, Error> {
        self.check_in_step()?;
        // One whose removal was interrupted would be a partition again.
        for number in self.departing()? {
            self.depart(number)?;
        }
        if let Some(known) = self.nodes.iter().find(|known| known.conninfo == node.conninfo) {
            let number = known.number;
            if known.is_leaving {
                self.set_leaving(number, false)?;
            }
            return Ok(number);
        }
        self.check_new(node)?;
        let number = self.free_number();
        self.nodes.push(row_of(number, node));
        self.nodes.sort_by_key(|node| node.number);
        self.deploy_node(number, self.version, &[])?;
        self.list_node(number, node)?;
        Ok(number)
    }

    /// Writes a node into the list of the proxy, and makes it a partition.
    fn list_node(&mut self, number: i32, node: &NodeConfig) -> Result<(), Error> {
        self.nodes.retain(|known| known.number != number);
        self.nodes.push(row_of(number, node));
        self.nodes.sort_by_key(|node| node.number);
        let server = self.define_server(&self.routes())?;
        let conninfo = literal(&node.conninfo);
        let sql = format!(
            "INSERT INTO pgrig_shard.node (number, conninfo, route) VALUES ({number}, {conninfo}, {});
             DELETE FROM pgrig_shard.former_node WHERE conninfo = {conninfo};\n{server}",
            literal(node.route()),
        );
        self.change_proxy("adding a node", &sql)
    }

    /// Takes a server back into the list that says that it is a node of this cluster, has some of its buckets,
    /// and is not known to the proxy: the proxy was restored to a moment before the node came, or the node to
    /// one before it left. It keeps its number, and what it has is judged with what the others have.
    pub(crate) fn take_back(&mut self, node: &NodeConfig) -> Result<(), Error> {
        if self.nodes.iter().any(|known| known.conninfo == node.conninfo) {
            return Ok(());
        }
        let number = self.free_number();
        let mut client = connect(&node.conninfo, &node_name(number))?;
        let failed = |source| on_node(LOOKING_FOR_CLUSTER, number, source);
        let there = "SELECT to_regclass('pgrig_shard.node') IS NOT NULL";
        if !client.query_one(there, &[]).map_err(failed)?.get::<_, bool>(0) {
            return Ok(());
        }
        let who = "SELECT number FROM pgrig_shard.node
                   WHERE cluster = $1 AND EXISTS (SELECT FROM pgrig_shard.bucket)";
        let row = client.query_opt(who, &[&self.id]).map_err(failed)?;
        // Another node has its number: `check_is_new` says so.
        let number = row.map(|row| row.get(0)).filter(|number| self.node(*number).is_err());
        match number {
            Some(number) => self.list_node(number, node),
            None => Ok(()),
        }
    }

    /// Marks a node as one that shall have no buckets.
    ///
    /// # Errors
    /// [`Error::Refused`] for the last one, and for one that is not there.
    pub fn remove(&mut self, number: i32) -> Result<(), Error> {
        self.check_in_step()?;
        self.check_removable(number)?;
        self.set_leaving(number, true)
    }

    /// Checks that a server can be a new node of this cluster.
    pub fn check_new(&mut self, node: &NodeConfig) -> Result<(), Error> {
        let number = self.free_number();
        let mut routes = self.routes();
        routes.insert(number, node.route().to_owned());
        WantedDefinitions::new(&routes)?;
        let mut client = connect(&node.conninfo, &node_name(number))?;
        check_server(&mut client, number)?;
        self.check_is_new(&mut client, number)
    }

    /// Checks that a node can leave.
    pub fn check_removable(&self, number: i32) -> Result<(), Error> {
        self.node(number)?;
        match self.staying().iter().all(|staying| *staying == number) {
            false => Ok(()),
            true => Err(Error::Refused {
                what: format!("node {number} is the last one: its buckets have nowhere to go"),
                hint: "add another node first".into(),
            }),
        }
    }

    /// Sets the addresses by which the proxy reaches its nodes from now on, by number; those that
    /// are not named are reached as before.
    pub fn set_routes(&mut self, routes: &BTreeMap<i32, String>) -> Result<(), Error> {
        let mut all = self.routes();
        all.extend(routes.iter().map(|(number, route)| (*number, route.clone())));
        let mut sql = self.define_server(&all)?;
        for (number, route) in &all {
            sql.push_str(&format!(
                "UPDATE pgrig_shard.node SET route = {} WHERE number = {number};\n",
                literal(route)
            ));
        }
        self.change_proxy("changing the routes", &sql)?;
        self.reload()
    }

    /// Nodes that are leaving, hold nothing any more, and are no part of a batch.
    pub(crate) fn departing(&mut self) -> Result<Vec<i32>, Error> {
        let batches: Vec<Batch> = self.unfinished()?.into_iter().map(|(_, batch)| batch).collect();
        let is_part = |number: i32| batches.iter().any(|one| [one.from, one.to].contains(&number));
        let is_empty = |number: i32| !self.owners.contains(&number) && !is_part(number);
        let departing = self.nodes.iter().filter(|node| node.is_leaving && is_empty(node.number));
        Ok(departing.map(|node| node.number).collect())
    }

    /// Takes a node out of the partitions, removes what it has of the cluster, and strikes it off. Until
    /// then it is in the list, so that this can be run again.
    pub(crate) fn depart(&mut self, number: i32) -> Result<(), Error> {
        let (id, mut routes) = (self.id.clone(), self.routes());
        routes.remove(&number);
        let server = self.define_server(&routes)?;
        self.change_proxy("removing a partition", &server)?;
        let failed = |source| on_node("forgetting the cluster", number, source);
        let client = self.data_node(number)?;
        let there = "SELECT to_regclass('pgrig_shard.node') IS NOT NULL";
        let is_there: bool = client.query_one(there, &[]).map_err(failed)?.get(0);
        let own = "SELECT FROM pgrig_shard.node WHERE cluster = $1";
        if is_there && client.query_opt(own, &[&id]).map_err(failed)?.is_some() {
            let forget = routines::forget(&self.functions);
            self.change_node(number, "forgetting the cluster", &forget)?;
        }
        self.strike_off(number)
    }

    /// Takes a node off the list; nothing is done on the node.
    pub(crate) fn strike_off(&mut self, number: i32) -> Result<(), Error> {
        let delete = format!(
            "INSERT INTO pgrig_shard.former_node (conninfo, number)
                 SELECT conninfo, number FROM pgrig_shard.node WHERE number = {number}
                 ON CONFLICT (conninfo) DO UPDATE
                     SET number = excluded.number, departed = clock_timestamp();
             DELETE FROM pgrig_shard.node WHERE number = {number}"
        );
        self.change_proxy("removing a node", &delete)?;
        self.nodes.retain(|node| node.number != number);
        // The next node may get the number.
        self.disconnect_from(number);
        Ok(())
    }

    /// SQL for the schemas of `buckets`, from the template.
    pub(crate) fn bucket_sql(&self, buckets: &[i32]) -> String {
        let mut sql = String::new();
        for bucket in buckets {
            let schema = bucket_schema(*bucket);
            sql.push_str(&format!("CREATE SCHEMA {schema};\n"));
            sql.push_str(&template_sql(&self.template, &schema, *bucket));
            sql.push_str(";\n");
        }
        sql
    }

    /// Runs SQL in one transaction on the proxy.
    pub(crate) fn change_proxy(&mut self, doing: &'static str, sql: &str) -> Result<(), Error> {
        let failed = |source| on_proxy(doing, source);
        let mut transaction = self.proxy.transaction().map_err(failed)?;
        secret::hide(&mut transaction).map_err(failed)?;
        transaction.batch_execute(sql).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// Makes a server a node of this cluster, with these buckets of a version of the mapping.
    pub(crate) fn deploy_node(
        &mut self,
        number: i32,
        version: i64,
        buckets: &[i32],
    ) -> Result<(), Error> {
        let (id, tool) = (literal(&self.id), self.tool);
        let base = data_node_sql(self.buckets);
        let node = format!(
            "{base}\nINSERT INTO pgrig_shard.node (cluster, number, version, tool)
                 VALUES ({id}, {number}, {version}, {tool})
                 ON CONFLICT (only_one) DO UPDATE SET version = {version}, number = {number}"
        );
        let client = self.data_node(number)?;
        let failed = |source| on_node("deploying the cluster's schema", number, source);
        let mut transaction = client.transaction().map_err(failed)?;
        transaction.batch_execute(&node).map_err(failed)?;
        let foreign = "SELECT cluster FROM pgrig_shard.node";
        let cluster: String = transaction.query_one(foreign, &[]).map_err(failed)?.get(0);
        if literal(&cluster) != id {
            return Err(other_cluster(number));
        }
        transaction.commit().map_err(failed)?;
        let there = "SELECT coalesce(array_agg(bucket), '{}') FROM pgrig_shard.bucket";
        let there: Vec<i32> = self.data_node(number)?.query_one(there, &[]).map_err(failed)?.get(0);
        let missing: Vec<i32> = buckets.iter().copied().filter(|b| !there.contains(b)).collect();
        for bucket in missing {
            let mut sql = self.bucket_sql(&[bucket]);
            sql.push_str(&format!(
                "INSERT INTO pgrig_shard.bucket (bucket, state, version)
                     VALUES ({bucket}, 'owned', {version});"
            ));
            self.change_node(number, "deploying a bucket from the template", &sql)?;
        }
        self.check_names(number)?;
        // A node that comes later has no buckets yet, but answers calls that go to all.
        self.change_buckets(number, "deploying the functions", "", buckets)
    }

    /// Finds the functions of the template and lets nodes and proxy offer them.
    fn offer(&mut self) -> Result<(), Error> {
        let schema = bucket_schema(0);
        let first = self.owners[0];
        let client = self.data_node(first)?;
        let failed = |source| on_node("looking at the template's functions", first, source);
        let functions = client.query(FUNCTIONS, &[&schema]).map_err(failed)?;
        self.functions = functions.iter().map(|row| cluster::function(row, &self.key)).collect();
        for number in self.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            self.check_names(number)?;
        }
        let names = routines::public_names(&self.functions);
        let taken = taken(&mut self.proxy, &names);
        refuse_taken(taken.map_err(|source| on_proxy(LOOKING, source))?, cluster::PROXY)?;
        for number in self.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            let own = self.owned(number);
            self.change_buckets(number, "deploying the functions", "", &own)?;
        }
        let mut sql = self.define_server(&self.routes())?;
        sql.push_str(&routines::mapping(&self.owners, self.version));
        sql.push_str(&routines::on_proxy(&self.functions));
        for function in &self.functions {
            let array = |words: &[String]| {
                let words: Vec<String> = words.iter().map(|word| literal(word)).collect();
                format!("ARRAY[{}]::text[]", words.join(", "))
            };
            sql.push_str(&format!(
                "INSERT INTO pgrig_shard.function (name, parameters, names, result, is_read, declared,
                                                   outputs, is_set, is_strict)
                     VALUES ({}, {}, {}, {}, {}, {}, {}, {}, {});\n",
                literal(&function.name),
                literal(&function.parameters),
                array(&function.names),
                literal(&function.result),
                function.is_read,
                literal(&function.declared),
                array(&function.outputs),
                function.is_set,
                function.is_strict,
            ));
        }
        self.change_proxy("deploying the functions", &sql)
    }

    /// Checks that no foreign function is in the place of the cluster's.
    fn check_names(&mut self, number: i32) -> Result<(), Error> {
        let names = routines::public_names(&self.functions);
        let client = self.data_node(number)?;
        let taken = taken(client, &names).map_err(|source| on_node(LOOKING, number, source))?;
        refuse_taken(taken, &node_name(number))
    }

    pub(crate) fn set_leaving(&mut self, number: i32, is_leaving: bool) -> Result<(), Error> {
        let sql =
            format!("UPDATE pgrig_shard.node SET leaving = {is_leaving} WHERE number = {number}");
        self.change_proxy("marking a node", &sql)?;
        self.reload()
    }

    /// A server that is in the list under another address must not be taken in twice.
    fn check_is_new(&mut self, client: &mut Client, number: i32) -> Result<(), Error> {
        let failed = |source| on_node(LOOKING_FOR_CLUSTER, number, source);
        let there = "SELECT to_regclass('pgrig_shard.node') IS NOT NULL";
        if !client.query_one(there, &[]).map_err(failed)?.get::<_, bool>(0) {
            return Ok(());
        }
        let who = "SELECT cluster, number FROM pgrig_shard.node";
        // A node without a row belongs to no cluster yet.
        let Some(row) = client.query_opt(who, &[]).map_err(failed)? else { return Ok(()) };
        let (cluster, its_number): (String, i32) = (row.get(0), row.get(1));
        if cluster != self.id {
            return Err(other_cluster(number));
        }
        if self.node(its_number).is_ok() {
            return Err(Error::Refused {
                what: format!("that server says that it is node {its_number} of this cluster already"),
                hint: "give the address of another one; if it was that node earlier, and has nothing that \
                       you need: DROP SCHEMA pgrig_shard CASCADE, and its buckets, there"
                    .into(),
            });
        }
        Ok(())
    }
}

fn row_of(number: i32, node: &NodeConfig) -> NodeRow {
    let (conninfo, route) = (node.conninfo.clone(), node.route().to_owned());
    NodeRow { number, conninfo, route, is_leaving: false }
}

/// A function of schema public that has the name of one of the cluster's and is not the cluster's:
/// the bodies of those name its schema.
pub(crate) fn taken(
    client: &mut Client,
    names: &[String],
) -> Result<Option<String>, postgres::Error> {
    Ok(client.query_opt(TAKEN, &[&names])?.map(|row| row.get(0)))
}

pub(crate) fn refuse_taken(taken: Option<String>, server: &str) -> Result<(), Error> {
    match taken {
        None => Ok(()),
        Some(function) => Err(Error::Refused {
            what: format!("{server} has a function {function} that is not the cluster's"),
            hint: "rename it, or rename the template's: nothing that pgrig-shard has not made is \
                   replaced"
                .into(),
        }),
    }
}

/// The proxy's schema, with the nodes and their shares, unless it is there already and is the same.
fn begin(proxy: &mut Client, nodes: &[NodeConfig], template: &Template<'_>) -> Result<(), Error> {
    let buckets = template.buckets;
    let failed = |source| on_proxy("deploying the proxy's schema", source);
    let found = proxy.query_one(UNFINISHED, &[]).map_err(failed)?;
    match found.get::<_, Option<bool>>(0) {
        Some(true) => return check_same(proxy, nodes, template),
        Some(false) => {
            return Err(Error::Refused {
                what: "the proxy has a cluster already".into(),
                hint: "name another database, or DROP SCHEMA pgrig_shard CASCADE there".into(),
            });
        }
        None => {}
    }
    proxy.batch_execute("CREATE EXTENSION IF NOT EXISTS plproxy").map_err(no_plproxy)?;
    let mut sql = with_mask(include_str!("sql/proxy.sql"), buckets);
    sql.push_str(&format!(
        "INSERT INTO pgrig_shard.cluster (id, buckets, version, template, key_name)
             VALUES (gen_random_uuid(), {buckets}, 1, {}, {});\n",
        literal(template.sql),
        literal(template.key)
    ));
    sql.push_str(include_str!("sql/former.sql"));
    sql.push_str(include_str!("sql/private.sql"));
    for (number, node) in nodes.iter().enumerate() {
        sql.push_str(&format!(
            "INSERT INTO pgrig_shard.node (number, conninfo, route) VALUES ({number}, {}, {});\n",
            literal(&node.conninfo),
            literal(node.route())
        ));
    }
    sql.push_str(&format!(
        "INSERT INTO pgrig_shard.bucket
             SELECT bucket, bucket % {}, 1 FROM generate_series(0, {buckets} - 1) AS bucket;\n",
        nodes.len()
    ));
    let mut transaction = proxy.transaction().map_err(failed)?;
    secret::hide(&mut transaction).map_err(failed)?;
    transaction.batch_execute(&sql).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Refuses to go on with a creation that was begun with other arguments.
fn check_same(
    proxy: &mut Client,
    nodes: &[NodeConfig],
    template: &Template<'_>,
) -> Result<(), Error> {
    let failed = |source| on_proxy("reading the cluster", source);
    let begun = "SELECT buckets, template, key_name FROM pgrig_shard.cluster";
    let begun = proxy.query_one(begun, &[]).map_err(failed)?;
    let known = "SELECT conninfo, route FROM pgrig_shard.node ORDER BY number";
    let known = proxy.query(known, &[]).map_err(failed)?;
    let known = known.iter().map(|row| (row.get::<_, &str>(0), row.get::<_, &str>(1)));
    let other = if begun.get::<_, i32>(0) != template.buckets {
        "another number of buckets"
    } else if begun.get::<_, &str>(1) != template.sql {
        "another template"
    } else if begun.get::<_, &str>(2) != template.key {
        "another key"
    } else if !known.eq(nodes.iter().map(|node| (node.conninfo.as_str(), node.route()))) {
        "other nodes or routes"
    } else {
        // Nothing is other than it was.
        return Ok(());
    };
    Err(Error::Refused {
        what: format!("the creation of a cluster with {other} was begun on this proxy"),
        hint:
            "run it again with the same arguments; to begin anew, DROP SCHEMA pgrig_shard CASCADE \
               on the proxy and on its nodes, and drop the schemas bucket_0000 and so on there"
                .into(),
    })
}

/// Checks that a template can be sharded, and gives its functions. It is made on the first node and
/// taken back.
fn check_template(client: &mut Client, template: &Template<'_>) -> Result<Vec<Function>, Error> {
    let refused = |what: String| Error::Refused {
        what: format!("the template cannot be sharded: {what}"),
        hint: "correct the template; nothing was made".into(),
    };
    match try_template(client, template, template.buckets) {
        Ok(trial) if trial.faults.is_empty() => Ok(trial.functions),
        Ok(trial) => Err(refused(listed(&trial.faults))),
        Err(source) if source.code().is_some() => Err(refused(server::message::chain(&source))),
        Err(source) => Err(on_node("trying the template", 0, source)),
    }
}

fn no_plproxy(source: postgres::Error) -> Error {
    // 0A000 and 58P01: no control file, no library.
    let is_missing = source.code().is_some_and(|code| ["0A000", "58P01"].contains(&code.code()));
    if !is_missing {
        return on_proxy("creating extension plproxy", source);
    }
    Error::MissingPart { what: "PL/Proxy is not installed on the proxy's server".into() }
}

fn other_cluster(number: i32) -> Error {
    Error::Refused {
        what: format!("node {number}: that server's database is in another cluster"),
        hint: "name another database; if that cluster is gone, DROP SCHEMA pgrig_shard CASCADE \
               and its buckets there"
            .into(),
    }
}

/// More would make schemas, and the functions that hold them, too many to be handled.
const BUCKETS_MAX: i32 = 4096;

const LOOKING_FOR_CLUSTER: &str = "looking for a cluster";

const LOOKING: &str = "looking for functions in the cluster's place";

const TAKEN: &str = r"
    SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proname = ANY ($1::text[])
      AND p.prosrc NOT LIKE '%pgrig\_shard%'
    ORDER BY 1 LIMIT 1";

/// Null without a cluster, true where its making was not completed.
const UNFINISHED: &str = "
    SELECT CASE WHEN to_regclass('pgrig_shard.cluster') IS NOT NULL
           THEN NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = 'pgrig_shard') END";
