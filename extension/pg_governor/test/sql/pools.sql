-- A pool for a role, one for a database, and limits for single pools.
CREATE VIEW limits AS
    SELECT pool, class, slot_limit FROM pg_governor_pools
    WHERE pool <> 'default' ORDER BY pool, class COLLATE "C";
CREATE VIEW me AS
    SELECT pool, state, class FROM pg_governor_sessions WHERE pid = pg_backend_pid();
SELECT * FROM limits;

SELECT current_user AS me, current_database() AS db \gset
ALTER DATABASE :"db" SET pg_governor.pool = 'reports';
\c -
BEGIN; SELECT * FROM me; COMMIT;

-- a role's setting counts more than a database's
ALTER ROLE :"me" SET pg_governor.pool = 'new';
\c -
BEGIN; SELECT * FROM me; COMMIT;
SELECT * FROM limits;

-- one that is not listed
SET pg_governor.pool = 'nowhere';
BEGIN; SELECT * FROM me; COMMIT;
SELECT unnest(problems) FROM pg_governor_health;

-- a pool without a limit takes no slot
SET pg_governor.pool = 'free';
BEGIN; SELECT * FROM me; COMMIT;

-- changed in the middle of a transaction, the slot goes back to where it came from
SET pg_governor.pool = 'reports';
BEGIN;
SET pg_governor.pool = 'new';
SELECT pool, taken FROM pg_governor_pools WHERE class = 'transaction' AND taken > 0;
COMMIT;
SELECT count(*) FROM pg_governor_pools WHERE taken > 0;

ALTER ROLE :"me" RESET pg_governor.pool;
ALTER DATABASE :"db" RESET pg_governor.pool;
DROP VIEW limits, me;
