\set o random(1, 1000000)
SET ROLE app;
SELECT total FROM orders WHERE id = :o;
