-- Calls of functions in one transaction of the proxy. Each call commits on its shard.
\set k1 :history_ms / 250 * 8 + random(0, 7)
\set k2 :history_ms / 250 * 8 + random(0, 7)
\set k3 :history_ms / 250 * 8 + random(0, 7)
\set v1 :history_value
\set v2 :history_value + 1
BEGIN;
-- \history append :k1 :v1
SELECT list_append(:k1, :v1);
-- \history list :k3
SELECT list_read(:k3);
-- \history append :k2 :v2
SELECT list_append(:k2, :v2);
COMMIT;
