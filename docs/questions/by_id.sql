\set o random(1, 1000000)
SELECT total FROM orders WHERE id = :o;
