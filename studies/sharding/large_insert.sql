-- Once in each trial: what follows the crash is no part of the question.
SELECT to_regclass('large') IS NOT NULL AS has_begun \gset
\if :has_begun
\sleep 100 ms
\else
-- The crash must not take the table with it, or the statement would begin once more.
SET synchronous_commit = on;
CREATE TABLE large (id int, info text);
INSERT INTO large
SELECT id, first_value(pad) OVER (ROWS UNBOUNDED PRECEDING)
FROM (SELECT generate_series(1, 1000000000) AS id, repeat('x', 100) AS pad) AS read;
\endif
