/* pg_governor 0.3.0 to 0.4.0 */

-- complain if this is sourced in psql rather than by ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_governor UPDATE" to load this file. \quit

-- What the objects are called in the library does not change any more. Nothing that uses them breaks.
CREATE OR REPLACE FUNCTION pg_governor_pools(
    OUT pool text,
    OUT class text,
    OUT paused boolean,
    OUT slot_limit int,
    OUT capacity int,
    OUT hard_max int,
    OUT taken int,
    OUT running int,
    OUT warm int,
    OUT reserved int,
    OUT discounted int,
    OUT long int,
    OUT queued int,
    OUT estimated_wait_ms double precision,
    OUT admits_free bigint,
    OUT admits_again bigint,
    OUT admits_turn bigint,
    OUT admits_reserved bigint,
    OUT admits_timeout bigint,
    OUT admits_blocking bigint,
    OUT admits_stall bigint,
    OUT admits_opened bigint,
    OUT admits_booked bigint,
    OUT admits_by_hand bigint,
    OUT waits bigint,
    OUT wait_ms_total double precision,
    OUT wait_ms_max double precision,
    OUT wait_histogram bigint[],
    OUT stalls bigint,
    OUT became_long bigint,
    OUT timeouts bigint,
    OUT refused bigint,
    OUT cancelled bigint,
    OUT stats_reset timestamptz
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_pools';

CREATE OR REPLACE FUNCTION pg_governor_queue(
    OUT pid int,
    OUT pool text,
    OUT class text,
    OUT place int,
    OUT waiting_since timestamptz,
    OUT waiting_ms double precision,
    OUT blocks_others boolean,
    OUT observed boolean
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_queue';

CREATE OR REPLACE FUNCTION pg_governor_sessions(
    OUT pid int,
    OUT pool text,
    OUT state text,
    OUT class text,
    OUT since timestamptz,
    OUT discounted boolean,
    OUT long boolean,
    OUT paused boolean,
    OUT admits_free bigint,
    OUT admits_again bigint,
    OUT waits bigint,
    OUT wait_ms_total double precision,
    OUT wait_ms_max double precision
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_sessions';

CREATE OR REPLACE FUNCTION pg_governor_reset() RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_reset';

CREATE OR REPLACE FUNCTION pg_governor_health(
    OUT library_version text,
    OUT mode text,
    OUT gates text,
    OUT why_open text,
    OUT monitor_pid int,
    OUT monitor_last_look timestamptz,
    OUT total_limit int,
    OUT total_taken int,
    OUT reserved_taken int,
    OUT repairs bigint,
    OUT cpus int,
    OUT problems text[]
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_health';

CREATE OR REPLACE FUNCTION pg_governor_advice(
    OUT pool text,
    OUT class text,
    OUT slot_limit int,
    OUT seconds double precision,
    OUT sessions_avg double precision,
    OUT sessions_max int,
    OUT cpu_share double precision,
    OUT lock_share double precision,
    OUT suggested_limit int,
    OUT reason text
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_advice';

CREATE OR REPLACE FUNCTION pg_governor_pause(pool text DEFAULT NULL, database name DEFAULT NULL, wait boolean DEFAULT true)
RETURNS void
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_pause';

CREATE OR REPLACE FUNCTION pg_governor_resume(pool text DEFAULT NULL, database name DEFAULT NULL) RETURNS int
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_resume';

CREATE OR REPLACE FUNCTION pg_governor_admit(pid int) RETURNS boolean
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_admit';

CREATE OR REPLACE FUNCTION pg_governor_evict(pid int) RETURNS boolean
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_evict';

CREATE OR REPLACE FUNCTION pg_governor_move(pid int, pool text DEFAULT NULL) RETURNS boolean
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_move';

CREATE FUNCTION pg_governor_culprits(
    OUT role name,
    OUT application_name text,
    OUT query_id bigint,
    OUT pool text,
    OUT class text,
    OUT slot_seconds double precision,
    OUT waiter_seconds double precision,
    OUT transactions bigint,
    OUT cancelled bigint,
    OUT named bigint,
    OUT last_pid int,
    OUT last_slots double precision,
    OUT last_seen timestamptz,
    OUT verdict text
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_culprits';

CREATE FUNCTION pg_governor_rules(
    OUT place int,
    OUT pool text,
    OUT conditions text,
    OUT chosen bigint,
    OUT denied bigint
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_rules';

CREATE FUNCTION pg_governor_status(
    OUT pool text,
    OUT class text,
    OUT slot_limit int,
    OUT effective_limit int,
    OUT enforced text,
    OUT found_limit int,
    OUT wait_ms double precision,
    OUT service_ms double precision,
    OUT refused_early bigint,
    OUT mode text
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_status';

CREATE VIEW pg_governor_culprits AS SELECT * FROM pg_governor_culprits();
CREATE VIEW pg_governor_rules AS SELECT * FROM pg_governor_rules();
CREATE VIEW pg_governor_status AS SELECT * FROM pg_governor_status();

REVOKE ALL ON FUNCTION pg_governor_culprits() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_rules() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_governor_culprits() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_rules() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_status() TO pg_monitor;
GRANT SELECT ON pg_governor_culprits TO pg_monitor;
GRANT SELECT ON pg_governor_rules TO pg_monitor;
GRANT SELECT ON pg_governor_status TO pg_monitor;
