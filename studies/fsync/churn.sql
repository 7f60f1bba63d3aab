-- Files made, extended, cut short by vacuum, and removed.
DROP TABLE IF EXISTS churn;
CREATE TABLE churn AS SELECT i AS id, repeat('x', 200) AS filler FROM generate_series(1, 2000) AS i;
CREATE UNIQUE INDEX ON churn (id);
DELETE FROM churn WHERE id > 200;
VACUUM churn;
