-- A list of the last 20 seconds is read and appended to, so that what was read before a fault and is gone
-- after it contradicts what is read then.
\set k1 :history_ms / 250 * 8 - random(0, 639)
\set v1 :history_value
BEGIN;
-- \history list :k1
SELECT elements FROM history_lists WHERE key = :k1;
-- \history append :k1 :v1
INSERT INTO history_lists AS l (key, elements) VALUES (:k1, ARRAY[:v1]::bigint[]) ON CONFLICT (key) DO UPDATE SET elements = l.elements || excluded.elements;
COMMIT;
