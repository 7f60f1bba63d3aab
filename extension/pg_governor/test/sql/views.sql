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
SELECT DISTINCT pool, enforced FROM pg_governor_status ORDER BY 1, 2;
SELECT count(*) FROM pg_governor_culprits;
SELECT count(*) FROM pg_governor_rules;
SELECT count(*) FROM pg_governor_advice();
-- counts are evidence: only a superuser erases them
SELECT pg_governor_reset();
RESET ROLE;

SET ROLE regress_governor_user;
TABLE pg_governor_pools;
TABLE pg_governor_queue;
TABLE pg_governor_sessions;
TABLE pg_governor_status;
TABLE pg_governor_culprits;
TABLE pg_governor_rules;
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

-- columns are found by their names; those that the library does not have are refused, and nothing crashes
CREATE FUNCTION pools_narrower(OUT class text, OUT pool text) RETURNS SETOF record
    LANGUAGE C AS 'pg_governor', 'pg_governor_pools';
SELECT * FROM pools_narrower() WHERE pool = 'default';
DROP FUNCTION pools_narrower();
CREATE FUNCTION pools_other(OUT pool text, OUT b text) RETURNS SETOF record
    LANGUAGE C AS 'pg_governor', 'pg_governor_pools_0_3';
SELECT * FROM pools_other();
DROP FUNCTION pools_other();
CREATE FUNCTION pools_typed(OUT pool int, OUT class text) RETURNS SETOF record
    LANGUAGE C AS 'pg_governor', 'pg_governor_pools_0_2';
SELECT * FROM pools_typed();
DROP FUNCTION pools_typed();

-- what an administrator does by hand is for superusers
SET ROLE pg_monitor;
SELECT pg_governor_pause();
SELECT pg_governor_resume();
SELECT pg_governor_admit(1);
SELECT pg_governor_evict(1);
SELECT pg_governor_move(1);
RESET ROLE;
SELECT pg_governor_admit(0), pg_governor_evict(pg_backend_pid()), pg_governor_move(0, 'default');
SELECT pg_governor_move(1, 'nowhere');
SELECT pg_governor_pause('nowhere');
SELECT pg_governor_pause(database => 'nowhere');
SELECT pg_governor_pause('default', 'postgres');
SELECT pg_governor_pause(wait => false);
SELECT DISTINCT paused FROM pg_governor_pools;
SELECT pg_governor_resume();
SELECT DISTINCT paused FROM pg_governor_pools;

-- what is set and changes nothing, or is missing, is said
SELECT unnest(problems) FROM pg_governor_health;
SELECT cpus > 0 AS cpus FROM pg_governor_health;
