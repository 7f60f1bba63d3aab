-- When the slot is given back.
\c -
CREATE TABLE things (n int);
CREATE VIEW slots AS SELECT sum(taken) AS taken, sum(running) AS running FROM pg_governor_pools;

BEGIN; TABLE slots; COMMIT;
TABLE slots;
BEGIN; ROLLBACK;
TABLE slots;

BEGIN; SAVEPOINT a; SELECT 1 / 0; ROLLBACK TO a; TABLE slots; COMMIT;
TABLE slots;
-- COMMIT AND CHAIN begins a transaction without BEGIN, which takes a slot at its first statement
BEGIN; TABLE slots; COMMIT AND CHAIN; TABLE slots; COMMIT;
SELECT admits_booked FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction';
-- and the statements in it take no slots of their own
SET pg_governor.gate_autocommit = on;
BEGIN; COMMIT AND CHAIN; TABLE slots; TABLE slots; COMMIT;
BEGIN; ROLLBACK AND CHAIN; TABLE slots; COMMIT;
BEGIN; SELECT 1 / 0; ROLLBACK AND CHAIN; TABLE slots; COMMIT;
BEGIN; COMMIT AND CHAIN; COMMIT AND CHAIN; TABLE slots; COMMIT;
-- a statement after that has one again
TABLE slots;
-- also after one that fails, and begins nothing
CREATE TABLE unique_things (n int UNIQUE DEFERRABLE INITIALLY DEFERRED);
BEGIN; INSERT INTO unique_things VALUES (1), (1); COMMIT AND CHAIN;
TABLE slots;
DROP TABLE unique_things;
SET pg_governor.gate_autocommit = off;
-- a BEGIN after another statement in the same message counts too
SELECT 1 \; BEGIN \; SELECT taken FROM slots \; COMMIT;
SELECT 1 \; BEGIN;
TABLE slots;
COMMIT;
TABLE slots;
SELECT pg_governor_reset();
BEGIN; BEGIN; TABLE slots; COMMIT;
SELECT admits_free, admits_booked FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction';
TABLE slots;

-- a prepared transaction has no slot, and needs none to be finished
BEGIN; INSERT INTO things VALUES (1); PREPARE TRANSACTION 'a';
TABLE slots;
COMMIT PREPARED 'a';
BEGIN; INSERT INTO things VALUES (2); PREPARE TRANSACTION 'b';
ROLLBACK PREPARED 'b';
TABLE slots;
TABLE things;

-- a procedure that commits keeps its slot until it returns
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$
DECLARE taken bigint;
BEGIN
    COMMIT;
    SELECT s.taken INTO taken FROM slots s;
    RAISE NOTICE 'after COMMIT: %', taken;
    ROLLBACK;
    SELECT s.taken INTO taken FROM slots s;
    RAISE NOTICE 'after ROLLBACK: %', taken;
END $$;
SET pg_governor.gate_autocommit = on;
CALL commits();
SET pg_governor.gate_autocommit = off;
TABLE slots;
CALL commits();
CREATE PROCEDURE fails() LANGUAGE plpgsql AS $$BEGIN COMMIT; RAISE 'no'; END $$;
SET pg_governor.gate_autocommit = on;
CALL fails();
SET pg_governor.gate_autocommit = off;
TABLE slots;

-- a cursor that outlives its transaction does not keep the slot
BEGIN;
DECLARE kept CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 3) i;
FETCH kept;
COMMIT;
TABLE slots;
SET pg_governor.gate_autocommit = on;
FETCH kept;
CLOSE kept;
DECLARE kept CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 3) i;
FETCH ALL kept;
CLOSE kept;
SET pg_governor.gate_autocommit = off;
TABLE slots;

-- VACUUM and CREATE INDEX CONCURRENTLY commit inside
VACUUM things;
CREATE INDEX CONCURRENTLY ON things (n);
TABLE slots;

-- a parallel query has the one slot of its leader
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET pg_governor.gate_autocommit = on;
SELECT pg_governor_reset();
SELECT count(*) FROM things;
SET pg_governor.gate_autocommit = off;
SELECT sum(admits_free) FROM pg_governor_pools WHERE class = 'query';
TABLE slots;
DROP VIEW slots;
DROP TABLE things;
DROP PROCEDURE commits, fails;
