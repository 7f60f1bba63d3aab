//! Dropping a bucket's schema, and whatever else hangs on it.

use crate::text::{bucket_schema, literal};

/// SQL that drops a bucket that the node does not serve. It refuses to take what others have made.
pub(crate) fn drop_bucket(bucket: i32) -> String {
    let schema = bucket_schema(bucket);
    let dependents = DEPENDENTS.replace("$1", &format!("ARRAY[{}]", literal(&schema)));
    format!(
        "DO $pgrig$
         DECLARE
             dependents text;
         BEGIN
             DELETE FROM pgrig_shard.bucket
                 WHERE bucket = {bucket} AND state IN ('gone', 'arriving');
             IF EXISTS (SELECT FROM pgrig_shard.bucket WHERE bucket = {bucket}) THEN
                 RAISE EXCEPTION 'bucket {bucket} is served here and is not dropped'
                     USING ERRCODE = 'object_not_in_prerequisite_state';
             END IF;
             SELECT string_agg(dependent, '; ') INTO dependents FROM ({dependents}) AS found;
             IF dependents IS NOT NULL THEN
                 RAISE EXCEPTION 'the old rows of bucket {bucket} stay: %', dependents
                     USING ERRCODE = 'dependent_objects_still_exist',
                           HINT = 'Drop what depends on them, then run the same again.';
             END IF;
             DROP SCHEMA IF EXISTS {schema} CASCADE;
         END
         $pgrig$;\n"
    )
}

/// Objects outside of schemas ($1) that DROP SCHEMA … CASCADE would take with them.
///
/// A rule, a constraint, a trigger, a default, a policy and a member of an operator family are where their
/// relation or family is. Of all others without a schema, such as casts, event triggers, extensions,
/// foreign-data wrappers and languages, none is a part of a bucket; a publication would silently publish less.
pub(crate) const DEPENDENTS: &str = "
    WITH RECURSIVE dependent (root, classid, objid, objsubid) AS (
        SELECT oid, 'pg_namespace'::regclass::oid, oid, 0 FROM pg_namespace
        WHERE nspname = ANY ($1)
        UNION
        SELECT p.root, d.classid, d.objid, d.objsubid
        FROM dependent p JOIN pg_depend d ON d.refclassid = p.classid AND d.refobjid = p.objid
    )
    SELECT DISTINCT format('%s depends on %s', pg_describe_object(classid, objid, objsubid),
                           root::regnamespace) AS dependent
    FROM dependent LEFT JOIN LATERAL (
        SELECT relnamespace FROM pg_class WHERE oid = CASE classid
            WHEN 'pg_class'::regclass THEN objid
            WHEN 'pg_rewrite'::regclass THEN (SELECT ev_class FROM pg_rewrite WHERE oid = objid)
            WHEN 'pg_trigger'::regclass THEN (SELECT tgrelid FROM pg_trigger WHERE oid = objid)
            WHEN 'pg_attrdef'::regclass THEN (SELECT adrelid FROM pg_attrdef WHERE oid = objid)
            WHEN 'pg_policy'::regclass THEN (SELECT polrelid FROM pg_policy WHERE oid = objid)
        END
        UNION ALL
        SELECT connamespace FROM pg_constraint
        WHERE classid = 'pg_constraint'::regclass AND oid = objid
        UNION ALL
        SELECT opfnamespace FROM pg_opfamily WHERE oid = CASE classid
            WHEN 'pg_amop'::regclass THEN (SELECT amopfamily FROM pg_amop WHERE oid = objid)
            WHEN 'pg_amproc'::regclass THEN (SELECT amprocfamily FROM pg_amproc WHERE oid = objid)
        END
        UNION ALL
        SELECT defaclnamespace FROM pg_default_acl
        WHERE classid = 'pg_default_acl'::regclass AND oid = objid
        UNION ALL
        SELECT objid WHERE classid = 'pg_namespace'::regclass
        UNION ALL
        SELECT oid FROM pg_namespace
        WHERE classid NOT IN ('pg_class'::regclass, 'pg_rewrite'::regclass,
                              'pg_trigger'::regclass, 'pg_attrdef'::regclass,
                              'pg_policy'::regclass, 'pg_constraint'::regclass)
          AND nspname = (pg_identify_object(classid, objid, objsubid)).schema
    ) AS home (schema) ON true
    WHERE home.schema <> root AND home.schema <> 'pg_toast'::regnamespace
          -- What PostgreSQL makes with a table is not named beside it.
          AND NOT EXISTS (SELECT FROM pg_type t WHERE classid = 'pg_type'::regclass AND t.oid = objid
                                                  AND (t.typrelid <> 0 OR t.typelem <> 0))
          AND NOT EXISTS (SELECT FROM pg_trigger t WHERE classid = 'pg_trigger'::regclass
                                                     AND t.oid = objid AND t.tgisinternal)
       OR home.schema IS NULL
          -- A move's own.
          AND NOT EXISTS (
              SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
              WHERE classid = 'pg_publication_rel'::regclass AND r.oid = objid
                AND p.pubname LIKE 'pgrig\\_shard%')
          AND NOT EXISTS (
              SELECT FROM pg_publication_namespace n JOIN pg_publication p ON p.oid = n.pnpubid
              WHERE classid = 'pg_publication_namespace'::regclass AND n.oid = objid
                AND p.pubname LIKE 'pgrig\\_shard%')
    ORDER BY 1";
