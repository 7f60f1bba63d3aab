/* pg_governor 0.4.0 */

-- complain if this is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_governor" to load this file. \quit

CREATE FUNCTION pg_governor_pools(
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
AS 'MODULE_PATHNAME', 'pg_governor_queue';

CREATE FUNCTION pg_governor_sessions(
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

CREATE FUNCTION pg_governor_reset() RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_reset';

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
    OUT repairs bigint,
    OUT cpus int,
    OUT problems text[]
) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pg_governor_health';

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
AS 'MODULE_PATHNAME', 'pg_governor_advice';

CREATE FUNCTION pg_governor_pause(pool text DEFAULT NULL, database name DEFAULT NULL, wait boolean DEFAULT true)
RETURNS void
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_pause';

CREATE FUNCTION pg_governor_resume(pool text DEFAULT NULL, database name DEFAULT NULL) RETURNS int
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_resume';

CREATE FUNCTION pg_governor_admit(pid int) RETURNS boolean
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_admit';

CREATE FUNCTION pg_governor_evict(pid int) RETURNS boolean
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_evict';

CREATE FUNCTION pg_governor_move(pid int, pool text DEFAULT NULL) RETURNS boolean
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'pg_governor_move';

CREATE VIEW pg_governor_pools AS SELECT * FROM pg_governor_pools();
CREATE VIEW pg_governor_queue AS SELECT * FROM pg_governor_queue();
CREATE VIEW pg_governor_sessions AS SELECT * FROM pg_governor_sessions();
CREATE VIEW pg_governor_culprits AS SELECT * FROM pg_governor_culprits();
CREATE VIEW pg_governor_rules AS SELECT * FROM pg_governor_rules();
CREATE VIEW pg_governor_status AS SELECT * FROM pg_governor_status();
CREATE VIEW pg_governor_health AS SELECT * FROM pg_governor_health();

REVOKE ALL ON FUNCTION pg_governor_pools() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_queue() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_sessions() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_culprits() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_rules() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_status() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_health() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_advice() FROM PUBLIC;
-- only for superusers, and for whom they grant it
REVOKE ALL ON FUNCTION pg_governor_reset() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_pause(text, name, boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_resume(text, name) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_admit(int) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_evict(int) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_governor_move(int, text) FROM PUBLIC;

GRANT EXECUTE ON FUNCTION pg_governor_pools() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_queue() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_sessions() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_culprits() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_rules() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_health() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_governor_advice() TO pg_monitor;

GRANT SELECT ON pg_governor_pools TO pg_monitor;
GRANT SELECT ON pg_governor_queue TO pg_monitor;
GRANT SELECT ON pg_governor_sessions TO pg_monitor;
GRANT SELECT ON pg_governor_culprits TO pg_monitor;
GRANT SELECT ON pg_governor_rules TO pg_monitor;
GRANT SELECT ON pg_governor_status TO pg_monitor;
GRANT SELECT ON pg_governor_health TO pg_monitor;
