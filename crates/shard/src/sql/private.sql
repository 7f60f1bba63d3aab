-- Nobody but the owner reads the connection strings, whatever the database's default privileges are.
DO $$
DECLARE
    place regclass;
    grantee text;
BEGIN
    FOR place, grantee IN
        SELECT DISTINCT c.oid::regclass,
               CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid IN (to_regclass('pgrig_shard.node'), to_regclass('pgrig_shard.former_node'))
          AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', place, grantee);
    END LOOP;
END
$$;
