-- A read and an append, committed in two phases.
\set k1 :history_ms / 250 * 8 + random(0, 7)
\set k2 :k1 + random(0, 1)
\set v1 :history_value
BEGIN;
-- \history list :k1
SELECT elements FROM history_lists WHERE key = :k1;
-- \history append :k2 :v1
INSERT INTO history_lists AS l (key, elements) VALUES (:k2, ARRAY[:v1]::bigint[]) ON CONFLICT (key) DO UPDATE SET elements = l.elements || excluded.elements;
PREPARE TRANSACTION 'history :v1';
COMMIT PREPARED 'history :v1';
