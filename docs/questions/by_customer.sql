\set c random(1, 50000)
SELECT sum(total) FROM orders WHERE customer = :c;
