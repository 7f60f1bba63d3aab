//! Buckets whose definition the template would undo, and objects elsewhere that their schemas would take along.

use postgres::Client;
use shard::{Cluster, Event, Moves, NodeChange};

use crate::common::{Servers, connect, options};
use crate::crashes::never;

const TEMPLATE: &str = "
    CREATE DOMAIN {bucket}.amount AS bigint CHECK (VALUE >= 0);
    CREATE TYPE {bucket}.mood AS ENUM ('calm', 'wild');
    CREATE TABLE {bucket}.item (id bigint PRIMARY KEY, amount {bucket}.amount, note text);
    CREATE INDEX by_note ON {bucket}.item (lower(note));
    CREATE STATISTICS {bucket}.both ON id, note FROM {bucket}.item;
    CREATE RULE quiet AS ON DELETE TO {bucket}.item DO ALSO NOTIFY deleted;
    CREATE FUNCTION {bucket}.note(key bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN (SELECT i.note FROM {bucket}.item i WHERE i.id = key); END $$;";

/// A cluster of two buckets, of which `bucket_0001` is to move to a second node.
struct Rig {
    cluster: Cluster,
    node: Client,
    _servers: Servers,
}

impl Rig {
    fn new() -> Rig {
        let servers = Servers::start(2);
        let (proxy, nodes) = (servers.conninfo(), [servers.node(0)]);
        let mut cluster = Cluster::create(&proxy, &nodes, 2, TEMPLATE, shard::KEY).unwrap();
        cluster.add(&servers.node(1)).unwrap();
        let node = connect(&servers.node(0).conninfo);
        Rig { cluster, node, _servers: servers }
    }

    /// Checks that the bucket is refused after some statements, and what is said of it; others take them back.
    fn check(&mut self, spoil: &[&str], mend: &[&str], expected: &str) {
        spoil.iter().for_each(|sql| self.node.batch_execute(sql).unwrap());
        let checked = self.cluster.check_movable(&options(), NodeChange::None);
        let error = checked.expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected:?} is not in:\n{error}");
        mend.iter().for_each(|sql| self.node.batch_execute(sql).unwrap());
    }

    /// Checks that nothing is spoiled any more: the bucket moves.
    fn finish(mut self) {
        let mut tell = |_: &Event<'_>| {};
        Moves::new(&mut self.cluster, options(), &mut tell, &never).run().unwrap();
        assert_eq!(self.cluster.owners(), [0, 1]);
    }
}

#[test]
fn what_the_template_would_undo_is_refused() {
    let mut rig = Rig::new();
    let has = |what: &str| format!("bucket_0001 has {what}");
    let table = "ALTER TABLE bucket_0001.item";
    rig.check(
        &[&format!("{table} ALTER COLUMN note SET STATISTICS 500")],
        &[&format!("{table} ALTER COLUMN note SET STATISTICS -1")],
        &has("item.note text STATISTICS 500"),
    );
    rig.check(
        &[&format!("{table} SET (toast.autovacuum_enabled = false)")],
        &[&format!("{table} RESET (toast.autovacuum_enabled)")],
        "options of TOAST {autovacuum_enabled=false}",
    );
    rig.check(
        &[&format!("{table} DISABLE RULE quiet")],
        &[&format!("{table} ENABLE RULE quiet")],
        "NOTIFY deleted; (enabled D)",
    );
    rig.check(
        &["ALTER INDEX bucket_0001.by_note ALTER COLUMN 1 SET STATISTICS 300"],
        &["ALTER INDEX bucket_0001.by_note ALTER COLUMN 1 SET STATISTICS -1"],
        "(lower(note)) (statistics 300 of 1)",
    );
    rig.check(
        &[
            "SET allow_in_place_tablespaces = on",
            "CREATE TABLESPACE other LOCATION ''",
            "ALTER INDEX bucket_0001.by_note SET TABLESPACE other",
        ],
        &["ALTER INDEX bucket_0001.by_note SET TABLESPACE pg_default", "DROP TABLESPACE other"],
        "(lower(note)) (tablespace other)",
    );
    rig.check(
        &["ALTER STATISTICS bucket_0001.both SET STATISTICS 90"],
        &["ALTER STATISTICS bucket_0001.both SET STATISTICS -1"],
        "FROM item (statistics 90)",
    );
    rig.check(
        &["REVOKE USAGE ON TYPE bucket_0001.mood FROM PUBLIC"],
        &["GRANT USAGE ON TYPE bucket_0001.mood TO PUBLIC"],
        "bucket_0001 lacks grant of USAGE on type mood to PUBLIC",
    );
    rig.check(
        &["GRANT USAGE ON DOMAIN bucket_0001.amount TO pg_monitor"],
        &["REVOKE USAGE ON DOMAIN bucket_0001.amount FROM pg_monitor"],
        &has("grant of USAGE on type amount to pg_monitor"),
    );
    rig.check(
        &["ALTER DOMAIN bucket_0001.amount SET NOT NULL"],
        &["ALTER DOMAIN bucket_0001.amount DROP NOT NULL"],
        &has("type amount: bigint NOT NULL"),
    );
    rig.check(
        &["ALTER TYPE bucket_0001.mood OWNER TO pg_monitor"],
        &["ALTER TYPE bucket_0001.mood OWNER TO CURRENT_USER"],
        "type mood: 'calm', 'wild', owner pg_monitor",
    );
    rig.check(
        &["COMMENT ON CONSTRAINT item_pkey ON bucket_0001.item IS 'mine'"],
        &["COMMENT ON CONSTRAINT item_pkey ON bucket_0001.item IS NULL"],
        &has("comment on constraint item_pkey on table item: mine"),
    );
    rig.finish();
}

/// `DROP SCHEMA … CASCADE` takes objects along that are in no schema.
#[test]
fn objects_in_no_schema_that_depend_on_a_bucket_are_found_before_it_moves() {
    let mut rig = Rig::new();
    let depends = |what: &str| format!("{what} depends on bucket_0001");
    rig.check(
        &[
            "CREATE FUNCTION bucket_0001.fire() RETURNS event_trigger LANGUAGE plpgsql
                AS 'BEGIN END'",
            "CREATE EVENT TRIGGER fire ON sql_drop EXECUTE FUNCTION bucket_0001.fire()",
        ],
        &["DROP EVENT TRIGGER fire", "DROP FUNCTION bucket_0001.fire()"],
        &depends("event trigger fire"),
    );
    rig.check(
        &["CREATE PUBLICATION mine FOR TABLE bucket_0001.item"],
        &["DROP PUBLICATION mine"],
        &depends("publication of table bucket_0001.item in publication mine"),
    );
    rig.check(
        &["CREATE PUBLICATION mine FOR TABLES IN SCHEMA bucket_0001"],
        &["DROP PUBLICATION mine"],
        &depends("publication of schema bucket_0001 in publication mine"),
    );
    rig.check(
        &[
            "CREATE FUNCTION bucket_0001.number(bucket_0001.mood) RETURNS bigint LANGUAGE sql
                AS 'SELECT 1::bigint'",
            "CREATE CAST (bucket_0001.mood AS bigint)
                WITH FUNCTION bucket_0001.number(bucket_0001.mood)",
        ],
        &[
            "DROP CAST (bucket_0001.mood AS bigint)",
            "DROP FUNCTION bucket_0001.number(bucket_0001.mood)",
        ],
        &depends("cast from bucket_0001.mood to bigint"),
    );
    rig.check(
        &[
            "CREATE FUNCTION bucket_0001.valid(text[], oid) RETURNS boolean LANGUAGE sql
                AS 'SELECT true'",
            "CREATE FOREIGN DATA WRAPPER elsewhere VALIDATOR bucket_0001.valid",
        ],
        &["DROP FOREIGN DATA WRAPPER elsewhere", "DROP FUNCTION bucket_0001.valid"],
        &depends("foreign-data wrapper elsewhere"),
    );
    rig.check(
        &[
            "CREATE FUNCTION bucket_0001.compare(bucket_0001.mood, bigint) RETURNS int
                LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
            "CREATE OPERATOR FAMILY public.moods USING btree",
            "ALTER OPERATOR FAMILY public.moods USING btree
                ADD FUNCTION 1 (bucket_0001.mood, bigint)
                    bucket_0001.compare(bucket_0001.mood, bigint)",
        ],
        &[
            "DROP OPERATOR FAMILY public.moods USING btree",
            "DROP FUNCTION bucket_0001.compare(bucket_0001.mood, bigint)",
        ],
        "of operator family moods for access method btree",
    );
    let is_packaged = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgrowlocks'";
    match rig.node.query_one(is_packaged, &[]).unwrap().get::<_, i64>(0) {
        0 => testing::skip::because("there is no extension pgrowlocks"),
        _ => rig.check(
            &["CREATE EXTENSION pgrowlocks SCHEMA bucket_0001"],
            &["DROP EXTENSION pgrowlocks"],
            &depends("extension pgrowlocks"),
        ),
    }
    rig.finish();
}
