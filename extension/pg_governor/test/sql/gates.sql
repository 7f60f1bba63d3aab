-- What takes a slot, in which class.  Looking takes none: the gate is then off.
\c -
CREATE TABLE things (id int PRIMARY KEY, n int);
INSERT INTO things SELECT i, 0 FROM generate_series(1, 10) i;
CREATE PROCEDURE look(label text) LANGUAGE plpgsql AS $$
DECLARE counts text;
BEGIN
    SELECT coalesce(string_agg(class || ' ' || admits_free + admits_again, ', ' ORDER BY class), 'none')
        INTO counts FROM pg_governor_pools
        WHERE pool = 'default' AND admits_free + admits_again > 0;
    RAISE NOTICE '%: %', label, counts;
    PERFORM pg_governor_reset();
END $$;
\set watch 'SET pg_governor.gate_autocommit = off;'
\set on 'SET pg_governor.gate_autocommit = on;'
SELECT pg_governor_reset();

BEGIN; UPDATE things SET n = 1; COMMIT;
:watch CALL look('block');
START TRANSACTION READ ONLY; SELECT count(*) FROM things; ROLLBACK;
:watch CALL look('start transaction');
SELECT count(*) FROM things; UPDATE things SET n = 1;
:watch CALL look('autocommit, gate off');
SET pg_governor.gate_begin = off;
BEGIN; COMMIT;
RESET pg_governor.gate_begin;
:watch CALL look('block, gate off');

:on SELECT count(*) FROM things;
:watch CALL look('select');
:on UPDATE things SET n = 2 WHERE id = 1;
:watch CALL look('update');
:on WITH w AS (DELETE FROM things WHERE id = 10 RETURNING id) SELECT * FROM w;
:watch CALL look('delete in a select');
:on /*+ big_query */ SELECT count(*) FROM things;
:watch CALL look('hint');
:on /* a comment */ /*+ SeqScan(things) */ -- and another
    /*+ big_query */ SELECT count(*) FROM things;
:watch CALL look('hint among comments');
:on /*+ SeqScan(things) big_query */ SELECT count(*) FROM things;
:watch CALL look('hint beside another one');
:on SELECT 1 \; /*+ big_query */ SELECT count(*) FROM things;
:watch CALL look('hint of the second statement');
:on /* big_query */ /*+ not_big_query */ SELECT count(*) FROM things;
:watch CALL look('no hint');
:on /*+ SeqScan(things) */ SELECT count(*) AS big_query FROM things;
:watch CALL look('another hint');
SET pg_governor.big_query_cost = 1000;
:on SELECT count(*) FROM generate_series(1, 3) i;
:watch CALL look('cheap');
SET pg_governor.big_query_cost = 0.01;
:on SELECT count(*) FROM generate_series(1, 3) i;
:watch CALL look('expensive');
RESET pg_governor.big_query_cost;

-- without a limit of its own a big query counts as any query
SET pg_governor.pool = 'small';
:on /*+ big_query */ SELECT 1;
SET pg_governor.gate_autocommit = off;
SELECT class, admits_free FROM pg_governor_pools WHERE pool = 'small' AND admits_free > 0;
RESET pg_governor.pool;
SELECT pg_governor_reset();

-- a function that the planner evaluates does not decide the class of its statement
CREATE FUNCTION at_plan_time() RETURNS int LANGUAGE plpgsql IMMUTABLE AS
    $$BEGIN RETURN (SELECT count(*) FROM generate_series(1, 3)); END$$;
:on UPDATE things SET n = 2 WHERE id = at_plan_time();
:watch CALL look('function at plan time');
DROP FUNCTION at_plan_time;

:on SELECT 1 \; SELECT 2 \; UPDATE things SET n = 3 WHERE id = 1;
:watch CALL look('several in one message');
:on EXPLAIN (COSTS OFF) SELECT count(*) FROM things;
:watch CALL look('explain');
\o /dev/null
:on EXPLAIN ANALYZE SELECT 1;
\o
:watch CALL look('explain analyze');
PREPARE one AS SELECT $1::int;
:on EXECUTE one(1);
:watch CALL look('execute');
:on COPY (SELECT 1) TO STDOUT;
:watch CALL look('copy');
:on DO $$BEGIN UPDATE things SET n = 4; PERFORM count(*) FROM things; END$$;
:watch CALL look('do');
:on CREATE TABLE copied AS SELECT * FROM things;
:watch CALL look('create table as');

-- never a slot
:on SHOW pg_governor.pool;
:on SET application_name = 'x';
:on LISTEN x;
:on UNLISTEN x;
:on CREATE INDEX ON copied ((n + 1));
:on CREATE INDEX CONCURRENTLY ON copied (id);
:on VACUUM copied;
:on DROP TABLE copied;
:on DEALLOCATE ALL;
:watch CALL look('utilities');

-- a query of the catalog passes, but not with a function that somebody has made
:on SELECT count(*) > 0 FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace;
:on SELECT count(*) FROM pg_stat_activity WHERE pid = pg_backend_pid();
:watch CALL look('catalog');
CREATE FUNCTION made() RETURNS int LANGUAGE plpgsql AS $$BEGIN RETURN 1; END$$;
:on SELECT made() FROM pg_class LIMIT 1;
:watch CALL look('catalog with a function');
DROP FUNCTION made;

-- what runs inside takes no slot of its own
CREATE FUNCTION inner_queries() RETURNS bigint LANGUAGE plpgsql AS
    $$BEGIN UPDATE things SET n = 5; RETURN (SELECT count(*) FROM things); END$$;
CREATE FUNCTION inner_trigger() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM inner_queries(); RETURN NULL; END$$;
:on SELECT inner_queries();
:watch CALL look('function');
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON things
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION inner_trigger();
:on INSERT INTO things VALUES (11, 0);
:watch CALL look('deferred trigger');
BEGIN;
:on INSERT INTO things VALUES (12, 0);
COMMIT;
:watch CALL look('deferred trigger in a block');

-- nothing is left
SELECT count(*) FROM pg_governor_pools WHERE taken <> 0 OR queued <> 0;
DROP TABLE things CASCADE;
DROP FUNCTION inner_queries, inner_trigger;
DROP PROCEDURE look;
