-- A table like userinfo that no vacuum has seen, two and a half times as large as shared_buffers at
-- least (some 110 rows lie on a page): then its blocks come from the operating system.
CREATE TABLE IF NOT EXISTS counted (userid int PRIMARY KEY, info text) WITH (autovacuum_enabled = off);
INSERT INTO counted
    SELECT key, md5(key::text)
    FROM generate_series(1, greatest(
             (SELECT max(userid) FROM userinfo),
             (SELECT setting::int * 275 FROM pg_settings WHERE name = 'shared_buffers'))) AS key
    WHERE NOT EXISTS (SELECT FROM counted);
CHECKPOINT;
