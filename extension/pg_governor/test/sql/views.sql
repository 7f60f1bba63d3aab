-- The views are for pg_monitor.
\c -
CREATE ROLE regress_governor_monitor IN ROLE pg_monitor;
CREATE ROLE regress_governor_user;

SET ROLE regress_governor_monitor;
SELECT count(*) > 0 AS some FROM pg_governor_pools;
SELECT count(*) FROM pg_governor_queue;
BEGIN;
SELECT pool, state, class, discounted, since <= now() AS since FROM pg_governor_sessions
    WHERE pid = pg_backend_pid();
COMMIT;
SELECT pg_governor_reset();
RESET ROLE;

SET ROLE regress_governor_user;
TABLE pg_governor_pools;
TABLE pg_governor_queue;
TABLE pg_governor_sessions;
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

-- made anew, it is the same
DROP EXTENSION pg_governor;
CREATE EXTENSION pg_governor VERSION '0.1.0';
SELECT extversion FROM pg_extension WHERE extname = 'pg_governor';

-- a way leads from every version to the newest, and nothing is left to do there
SELECT source FROM pg_available_extensions AS newest,
    pg_extension_update_paths(newest.name)
    WHERE newest.name = 'pg_governor' AND target = default_version AND path IS NULL;
ALTER EXTENSION pg_governor UPDATE;
SELECT installed_version = default_version AS newest
    FROM pg_available_extensions WHERE name = 'pg_governor';
