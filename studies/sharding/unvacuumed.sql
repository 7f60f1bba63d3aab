-- A table like userinfo that no vacuum has seen, at least two and a half times as large as
-- shared_buffers (226 rows fill a page): its blocks come from the operating system.
CREATE TABLE IF NOT EXISTS counted (userid int PRIMARY KEY, info text) WITH (autovacuum_enabled = off);
INSERT INTO counted (userid)
    SELECT key
    FROM generate_series(1, greatest(
             (SELECT max(userid) FROM userinfo),
             (SELECT setting::int * 565 FROM pg_settings WHERE name = 'shared_buffers'))) AS key
    WHERE NOT EXISTS (SELECT FROM counted);
CHECKPOINT;
