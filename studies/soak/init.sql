-- A queue in one table: a job is a row that is inserted, locked, and deleted.
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payload text NOT NULL
);
-- Some wait always: a consumer that comes finds one.
INSERT INTO jobs (payload) SELECT repeat('x', 100) FROM generate_series(1, 100);

-- A table of which every row is changed all the time.
CREATE TABLE counters (
    id int PRIMARY KEY,
    n bigint NOT NULL,
    filler text NOT NULL
);
INSERT INTO counters SELECT id, 0, repeat('x', 100) FROM generate_series(1, :rows) id;

-- The same queue in three tables that take turns: nothing is updated or deleted, and one that is done with is emptied
-- as a whole. A job has the number that its consumer draws.
CREATE TABLE turn_0 (id bigint PRIMARY KEY, payload text NOT NULL);
CREATE TABLE turn_1 (id bigint PRIMARY KEY, payload text NOT NULL);
CREATE TABLE turn_2 (id bigint PRIMARY KEY, payload text NOT NULL);
CREATE SEQUENCE put;
CREATE SEQUENCE got;

-- The table whose turn it is; each has so many seconds.
CREATE FUNCTION turn(shift int DEFAULT 0) RETURNS text LANGUAGE sql AS $$
    SELECT 'turn_' || (floor(extract(epoch FROM clock_timestamp()) / 2)::bigint + shift) % 3
$$;

-- Puts a job into the table whose turn it is, and takes the next one from there or from the one before.
CREATE FUNCTION put_and_get() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    job bigint := nextval('got');
    found_in_table bigint;
BEGIN
    EXECUTE format('INSERT INTO %I VALUES ($1, $2)', turn()) USING nextval('put'), repeat('x', 100);
    EXECUTE format('SELECT id FROM %I WHERE id = $1 UNION ALL SELECT id FROM %I WHERE id = $1', turn(), turn(-1))
        INTO found_in_table USING job;
    RETURN found_in_table;
END
$$;

-- Empties the table whose turn is next.
CREATE FUNCTION rotate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('TRUNCATE %I', turn(1));
END
$$;

-- Its functions say how much of a table is free or dead.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgstattuple') THEN
        CREATE EXTENSION IF NOT EXISTS pgstattuple;
    END IF;
END
$$;

VACUUM ANALYZE;
