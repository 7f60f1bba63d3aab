\set id random(1, :rows)
UPDATE counters SET n = n + 1 WHERE id = :id;
