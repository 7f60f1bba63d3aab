-- What the source proposes: a limit for a role and one for a database. The sleepers of two variants log in there.
-- On a server without pg_governor the setting is only kept.
DROP DATABASE IF EXISTS sleepers WITH (FORCE);
CREATE DATABASE sleepers;
DROP ROLE IF EXISTS sleeper;
CREATE ROLE sleeper LOGIN PASSWORD '{primary.password}';
ALTER ROLE sleeper SET pg_governor.pool = 'sleepers';
ALTER DATABASE sleepers SET pg_governor.pool = 'sleepers';
