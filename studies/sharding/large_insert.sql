-- One statement for each trial: what follows the crash is no part of the question.
SELECT count(*) > 0 AS has_begun FROM begun \gset
\if :has_begun
\sleep 100 ms
\else
INSERT INTO begun VALUES (:client_id);
INSERT INTO large
SELECT id, first_value(pad) OVER (ROWS UNBOUNDED PRECEDING)
FROM (SELECT generate_series(1, 1000000000) AS id, repeat('x', 100) AS pad) AS read;
\endif
