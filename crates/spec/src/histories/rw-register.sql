-- Two registers: one is read and, every other time, written; the other one is read.
\set k1 :history_ms / 250 * 8 + random(0, 5)
\set k2 :k1 + random(0, 2)
\set v1 :history_value
BEGIN;
-- \history register :k1
SELECT value FROM history_registers WHERE key = :k1;
\if random(0, 1) = 0
-- \history write :k1 :v1
INSERT INTO history_registers (key, value) VALUES (:k1, :v1) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
\endif
-- \history register :k2
SELECT value FROM history_registers WHERE key = :k2;
COMMIT;
