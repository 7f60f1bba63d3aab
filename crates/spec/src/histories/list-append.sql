-- Three operations on lists, each an append or a read. The keys ascend, so that no two transactions
-- wait for each other; they are used for a quarter of a second.
\set k1 :history_ms / 250 * 8 + random(0, 5)
\set k2 :k1 + random(0, 2)
\set k3 :k2 + random(0, 2)
\set v1 :history_value
\set v2 :history_value + 1
\set v3 :history_value + 2
BEGIN;
\if random(0, 1) = 0
-- \history append :k1 :v1
INSERT INTO history_lists AS l (key, elements) VALUES (:k1, ARRAY[:v1]::bigint[]) ON CONFLICT (key) DO UPDATE SET elements = l.elements || excluded.elements;
\else
-- \history list :k1
SELECT elements FROM history_lists WHERE key = :k1;
\endif
\if random(0, 1) = 0
-- \history append :k2 :v2
INSERT INTO history_lists AS l (key, elements) VALUES (:k2, ARRAY[:v2]::bigint[]) ON CONFLICT (key) DO UPDATE SET elements = l.elements || excluded.elements;
\else
-- \history list :k2
SELECT elements FROM history_lists WHERE key = :k2;
\endif
\if random(0, 1) = 0
-- \history append :k3 :v3
INSERT INTO history_lists AS l (key, elements) VALUES (:k3, ARRAY[:v3]::bigint[]) ON CONFLICT (key) DO UPDATE SET elements = l.elements || excluded.elements;
\else
-- \history list :k3
SELECT elements FROM history_lists WHERE key = :k3;
\endif
COMMIT;
