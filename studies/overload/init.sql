CREATE TABLE hot (id int PRIMARY KEY, n bigint NOT NULL);
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 4) i;
CREATE TABLE log (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));
CREATE TABLE state (client int PRIMARY KEY, seq bigint, chain bigint);
INSERT INTO state SELECT i, 0, NULL FROM generate_series(0, 1023) i;
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
