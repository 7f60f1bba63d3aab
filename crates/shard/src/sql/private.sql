-- Nobody but the owner reads the connection strings, whatever the database's default privileges are.
DO $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'pgrig_shard.node'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON pgrig_shard.node FROM %s CASCADE', grantee);
    END LOOP;
END
$$;
