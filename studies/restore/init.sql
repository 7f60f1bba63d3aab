CREATE TABLE log (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));
CREATE TABLE state (client int PRIMARY KEY, seq bigint, chain bigint) WITH (fillfactor = 50);
INSERT INTO state SELECT i, 0, NULL FROM generate_series(0, 63) i;
-- What no client changes: a damaged page of it is healed by no replay.
CREATE TABLE catalogue AS SELECT i, repeat(md5(i::text), 8) AS text FROM generate_series(1, :rows) i;
