CREATE TABLE writes_log (client int, seq bigint, chain bigint, id bigint, PRIMARY KEY (client, seq));
CREATE TABLE writes_state (client int PRIMARY KEY, seq bigint, chain bigint);
CREATE TABLE items (id bigint PRIMARY KEY, note text);
INSERT INTO items SELECT i, 'item ' || i FROM generate_series(1, :rows) AS i;
CREATE TABLE hot_items (id bigint PRIMARY KEY, seq bigint) WITH (fillfactor = 50);
INSERT INTO hot_items SELECT i, 0 FROM generate_series(1, :rows) AS i;
CREATE TABLE docs (id bigint PRIMARY KEY, seq bigint, body text);
ALTER TABLE docs ALTER body SET STORAGE EXTERNAL;
INSERT INTO docs SELECT i, 0, '' FROM generate_series(1, :rows) AS i;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE apart LOCATION '';
CREATE TABLE spaced (id bigint PRIMARY KEY, seq bigint) TABLESPACE apart;
INSERT INTO spaced SELECT i, 0 FROM generate_series(1, :rows) AS i;
CREATE TABLE locked (id int PRIMARY KEY, n bigint);
INSERT INTO locked SELECT i, 0 FROM generate_series(1, 3) AS i;
CREATE TABLE locked_log (client int, seq bigint, chain bigint, id int, PRIMARY KEY (client, seq));
CREATE TABLE prepared (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));
CREATE TABLE gids (gid text PRIMARY KEY, done boolean);
CREATE TABLE slots (client int, seq bigint, chain bigint, name name PRIMARY KEY);
CREATE SEQUENCE numbers;
-- Which file each relation has, for the library that swallows flushes of one.
COPY (
    SELECT name, pg_relation_filepath(oid) FROM (
        SELECT 'docs_toast' AS name, reltoastrelid AS oid FROM pg_class WHERE relname = 'docs'
        UNION ALL SELECT relname, oid FROM pg_class
            WHERE relname IN ('hot_items', 'items', 'items_pkey', 'spaced', 'locked', 'numbers')
    ) AS files
) TO '/var/tmp/pgrig-planted/files' WITH (DELIMITER ' ');
