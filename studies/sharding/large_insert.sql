INSERT INTO large SELECT id, repeat('x', 100) FROM generate_series(1, 1000000000) AS id;
