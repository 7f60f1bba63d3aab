-- The views are for pg_monitor.
\c -
CREATE ROLE regress_governor_monitor IN ROLE pg_monitor;
CREATE ROLE regress_governor_user;

SET ROLE regress_governor_monitor;
SELECT count(*) > 0 AS some FROM pg_governor_pools;
SELECT count(*) FROM pg_governor_queue;
BEGIN;
SELECT pool, state, class, discounted, since <= clock_timestamp() AS since FROM pg_governor_sessions
    WHERE pid = pg_backend_pid();
COMMIT;
SELECT mode, gates, why_open, monitor_pid > 0 AS monitor, monitor_last_look <= clock_timestamp() AS looked,
    repairs FROM pg_governor_health;
SELECT count(*) FROM pg_governor_advice();
-- counts are evidence: only a superuser erases them
SELECT pg_governor_reset();
RESET ROLE;

SET ROLE regress_governor_user;
TABLE pg_governor_pools;
TABLE pg_governor_queue;
TABLE pg_governor_sessions;
TABLE pg_governor_health;
SELECT * FROM pg_governor_advice();
SELECT * FROM pg_governor_pools();
SELECT pg_governor_reset();
RESET ROLE;

-- a session's counts become its pool's when it ends
SELECT pg_governor_reset();
BEGIN; COMMIT;
\c -
SELECT admits_free, waits FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction';
SELECT pg_governor_reset();
SELECT sum(admits_free), max(stats_reset) > now() - interval '1 minute' AS reset
    FROM pg_governor_pools;

DROP ROLE regress_governor_monitor, regress_governor_user;

-- the objects of version 0.1 say that they are too old
DROP EXTENSION pg_governor;
CREATE EXTENSION pg_governor VERSION '0.1.0';
TABLE pg_governor_pools;
TABLE pg_governor_queue;
TABLE pg_governor_sessions;
SELECT pg_governor_reset();

-- updated, they are the same as made anew
CREATE VIEW objects AS
    SELECT pg_describe_object(d.classid, d.objid, 0) AS object,
        CASE d.classid
            WHEN 'pg_proc'::regclass THEN
                (SELECT prosrc || ' ' || coalesce(proacl::text, '') || coalesce(proallargtypes::text, '')
                    || coalesce(proargnames::text, '') FROM pg_proc WHERE oid = d.objid)
            WHEN 'pg_class'::regclass THEN
                (SELECT coalesce(relacl::text, '') || pg_get_viewdef(oid) FROM pg_class WHERE oid = d.objid)
        END AS definition
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
    WHERE d.refclassid = 'pg_extension'::regclass AND e.extname = 'pg_governor' AND d.deptype = 'e';
ALTER EXTENSION pg_governor UPDATE;
CREATE TEMP TABLE updated AS TABLE objects;
DROP EXTENSION pg_governor;
CREATE EXTENSION pg_governor;
SELECT count(*) FROM objects WHERE definition <> '';
(TABLE updated EXCEPT TABLE objects) UNION ALL (TABLE objects EXCEPT TABLE updated);
DROP VIEW objects;

-- objects with another number of columns are refused, and nothing crashes
CREATE FUNCTION pools_wider(OUT a text, OUT b text) RETURNS SETOF record
    LANGUAGE C AS 'pg_governor', 'pg_governor_pools_0_2';
SELECT * FROM pools_wider();
DROP FUNCTION pools_wider();

-- a way leads from every version to the newest, and nothing is left to do there
SELECT source FROM pg_available_extensions AS newest,
    pg_extension_update_paths(newest.name)
    WHERE newest.name = 'pg_governor' AND target = default_version AND path IS NULL;
SELECT installed_version = default_version AS newest
    FROM pg_available_extensions WHERE name = 'pg_governor';
