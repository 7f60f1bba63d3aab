CREATE TABLE log (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));
CREATE TABLE state (client int PRIMARY KEY, seq bigint, chain bigint);
INSERT INTO state SELECT i, 0, NULL FROM generate_series(0, 1023) i;
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
