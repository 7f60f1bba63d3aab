CREATE TABLE test_sync (
    id int8 PRIMARY KEY,
    name text,
    creat_time timestamp(0) DEFAULT clock_timestamp()
);
INSERT INTO test_sync (id, name, creat_time)
    SELECT i, i || '_name', timestamp '2000-01-01' FROM generate_series(1, :rows) AS i;
-- What clients write of themselves, so that what a power cut took can be counted.
CREATE TABLE writes_log (
    client int NOT NULL,
    seq bigint NOT NULL,
    chain bigint NOT NULL,
    id int8 NOT NULL,
    PRIMARY KEY (client, seq)
);
CREATE TABLE writes_state (
    client int PRIMARY KEY,
    seq bigint NOT NULL,
    chain bigint NOT NULL
);
-- Replication slots that were made.
CREATE TABLE slots (
    client int NOT NULL,
    seq bigint NOT NULL,
    chain bigint NOT NULL,
    name name PRIMARY KEY
);
CREATE SEQUENCE slot_numbers;
-- A row bears the number of the last transaction that changed it, by the log that the same transaction wrote. Each row
-- of this view is damage.
CREATE VIEW damaged_rows AS
    SELECT format('row %s is %s, and the log has %s', id, quote_nullable(name), coalesce(seq::text, 'no change of it'))
        FROM test_sync LEFT JOIN (SELECT id, max(seq) AS seq FROM writes_log GROUP BY id) AS log USING (id)
        WHERE name IS DISTINCT FROM coalesce('off ' || seq, id || '_name')
    UNION ALL
    SELECT format('%s rows, and the last one is %s', count(*), max(id)) FROM test_sync
        HAVING count(*) IS DISTINCT FROM max(id);
-- A table that is made again and again, and by whom it was made last.
CREATE TABLE churn (id int, seq bigint, filler text);
CREATE TABLE churn_state (
    client int PRIMARY KEY,
    seq bigint NOT NULL,
    chain bigint NOT NULL
);
VACUUM (ANALYZE) test_sync;
