/* pg_governor 0.2.0 */

-- complain if this is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_governor" to load this file. \quit

CREATE FUNCTION pg_governor_pools(
    OUT pool text,
    OUT class text,
    OUT slot_limit int,
    OUT capacity int,
    OUT hard_max int,
    OUT taken int,
    OUT running int,
    OUT warm int,
    OUT reserved int,
    OUT discounted int,
    OUT queued int,
    OUT admits_free bigint,
    OUT admits_again bigint,
    OUT admits_turn bigint,
    OUT admits_reserved bigint,
    OUT admits_timeout bigint,
    OUT admits_blocking bigint,
    OUT admits_stall bigint,
    OUT admits_opened bigint,
    OUT admits_demoted bigint,
    OUT waits bigint,
    OUT wait_ms_total double precision,
    OUT wait_ms_max double precision,
    OUT wait_histogram bigint[],
    OUT stalls bigint,
    OUT timeouts bigint,
    OUT refused bigint,
    OUT cancelled bigint,
    OUT stats_reset timestamptz
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_pools_0_2';

CREATE FUNCTION pg_governor_queue(
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
AS 'MODULE_PATHNAME', 'pg_governor_queue_0_2';

CREATE FUNCTION pg_governor_sessions(
    OUT pid int,
    OUT pool text,
    OUT state text,
    OUT class text,
    OUT since timestamptz,
    OUT discounted boolean,
    OUT admits_free bigint,
    OUT admits_again bigint,
    OUT waits bigint,
    OUT wait_ms_total double precision,
    OUT wait_ms_max double precision
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_sessions_0_2';

CREATE FUNCTION pg_governor_reset() RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_reset_0_2';

CREATE FUNCTION pg_governor_health(
    OUT library_version text,
    OUT mode text,
    OUT gates text,
    OUT why_open text,
    OUT monitor_pid int,
    OUT monitor_last_look timestamptz,
    OUT total_limit int,
    OUT total_taken int,
    OUT reserved_taken int,
    OUT repairs bigint
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_health_0_2';

CREATE FUNCTION pg_governor_advice(
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
AS 'MODULE_PATHNAME', 'pg_governor_advice_0_2';

CREATE VIEW pg_governor_pools AS SELECT * FROM pg_governor_pools();
CREATE VIEW pg_governor_queue AS SELECT * FROM pg_governor_queue();
CREATE VIEW pg_governor_sessions AS SELECT * FROM pg_governor_sessions();
CREATE VIEW pg_governor_health AS SELECT * FROM pg_governor_health();

REVOKE ALL ON FUNCTION pg_governor_pools() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_queue() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_sessions() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_health() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_advice() FROM PUBLIC;
-- only for superusers, and for whom they grant it: it erases evidence
REVOKE ALL ON FUNCTION pg_governor_reset() FROM PUBLIC;

GRANT EXECUTE ON FUNCTION pg_governor_pools() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_queue() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_sessions() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_health() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_advice() TO pg_monitor;

GRANT SELECT ON pg_governor_pools TO pg_monitor;
GRANT SELECT ON pg_governor_queue TO pg_monitor;
GRANT SELECT ON pg_governor_sessions TO pg_monitor;
GRANT SELECT ON pg_governor_health TO pg_monitor;
