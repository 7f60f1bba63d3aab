//! Clusters that an earlier version of the program has made get what this one needs. No move may be under
//! way, which [`crate::state::Step::of`] finds out.

use server::Client;

use crate::cluster::{Cluster, on_node, on_proxy};
use crate::error::Error;

/// Gives the proxy's tables their newer columns.
pub(crate) fn upgrade_proxy(proxy: &mut Client) -> Result<(), Error> {
    let failed = |source| on_proxy("upgrading the cluster's tables", source);
    proxy.batch_execute(PROXY).map_err(failed)?;
    if proxy.query_one(HAS_FORMER, &[]).map_err(failed)?.get(0) {
        return Ok(());
    }
    let private = include_str!("sql/private.sql");
    let former = format!("BEGIN;\n{}{private}COMMIT;", include_str!("sql/former.sql"));
    proxy.batch_execute(&former).map_err(failed)
}

impl Cluster {
    /// Gives a node's table its newer columns. What the node serves came with the switch that the mapping
    /// has for it.
    pub(crate) fn upgrade_node(&mut self, number: i32, owners: &[(i32, i64)]) -> Result<(), Error> {
        let failed = |source| on_node("upgrading the cluster's tables", number, source);
        let lacks = self.data_node(number)?.query_one(LACKS, &[]).map_err(failed)?;
        let (lacks_version, lacks_target): (bool, bool) = (lacks.get(0), lacks.get(1));
        if !lacks_target {
            return Ok(());
        }
        let mut alter = "ALTER TABLE pgrig_shard.bucket ADD COLUMN target int;\n".to_owned();
        if !lacks_version {
            return self.change_node(number, "upgrading the cluster's tables", &alter);
        }
        alter.push_str(
            "ALTER TABLE pgrig_shard.bucket ADD COLUMN version bigint NOT NULL DEFAULT 0;\n",
        );
        for (bucket, (_, since)) in (0..).zip(owners).filter(|(_, (owner, _))| *owner == number) {
            let bucket: i32 = bucket;
            alter.push_str(&format!(
                "UPDATE pgrig_shard.bucket SET version = {since} WHERE bucket = {bucket};\n"
            ));
        }
        self.change_node(number, "upgrading the cluster's tables", &alter)
    }
}

const LACKS: &str = "
    SELECT NOT 'version' = ANY (columns), NOT 'target' = ANY (columns)
    FROM (SELECT coalesce(array_agg(attname::text), '{version,target}') AS columns FROM pg_attribute
          WHERE attrelid = to_regclass('pgrig_shard.bucket') AND NOT attisdropped) AS there";

const PROXY: &str = "
    DO $pgrig$
    BEGIN
        IF to_regclass('pgrig_shard.function') IS NULL OR EXISTS (
            SELECT FROM pg_attribute
            WHERE attrelid = to_regclass('pgrig_shard.function') AND attname = 'is_strict') THEN
            RETURN;
        END IF;
        ALTER TABLE pgrig_shard.cluster ADD COLUMN key_name text NOT NULL DEFAULT 'key';
        ALTER TABLE pgrig_shard.function
            ADD COLUMN declared text, ADD COLUMN outputs text[] NOT NULL DEFAULT '{}',
            ADD COLUMN is_set boolean NOT NULL DEFAULT false,
            ADD COLUMN is_strict boolean NOT NULL DEFAULT false;
        UPDATE pgrig_shard.function SET declared = parameters;
        ALTER TABLE pgrig_shard.function ALTER COLUMN declared SET NOT NULL;
    END
    $pgrig$";

/// True without a cluster, too.
const HAS_FORMER: &str = "
    SELECT to_regclass('pgrig_shard.cluster') IS NULL
           OR to_regclass('pgrig_shard.former_node') IS NOT NULL";
