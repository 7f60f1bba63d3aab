CREATE TABLE test_sync (
    id int8 PRIMARY KEY,
    name text,
    creat_time timestamp(0) DEFAULT clock_timestamp()
);
INSERT INTO test_sync (id, name) SELECT i, i || '_name' FROM generate_series(1, :rows) AS i;
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
CREATE TABLE slots (name name PRIMARY KEY);
CREATE SEQUENCE slot_numbers;
VACUUM (ANALYZE) test_sync;
