-- Every setting with its default, and who may change it.
CREATE EXTENSION pg_governor;
SELECT name, boot_val, unit, context FROM pg_settings
WHERE name LIKE 'pg\_governor.%' ORDER BY name COLLATE "C";

-- What is not understood is refused, with the place.
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=x)';
ALTER SYSTEM SET pg_governor.pools = 'reports(queries=2)';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2) batch()';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2),';
ALTER SYSTEM SET pg_governor.pools = ' reports ( query = 2 , transaction=4 ),batch()';
ALTER SYSTEM RESET pg_governor.pools;
SET pg_governor.pool = '';
SET pg_governor.on_timeout = 'break';
SET pg_governor.nonsense = 1;

-- How a session is treated is not for the session to decide.
CREATE ROLE regress_governor_user LOGIN;
SET ROLE regress_governor_user;
SET pg_governor.pool = 'other';
SET pg_governor.gate_begin = off;
SET pg_governor.gate_autocommit = off;
SET pg_governor.queue_timeout = 1;
RESET ROLE;
DROP ROLE regress_governor_user;
