INSERT INTO large
SELECT id, first_value(pad) OVER (ROWS UNBOUNDED PRECEDING)
FROM (SELECT generate_series(1, 1000000000) AS id, repeat('x', 100) AS pad) AS read;
