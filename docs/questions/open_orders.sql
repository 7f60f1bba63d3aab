\set c random(1, 50000)
SELECT id, total FROM orders WHERE customer = :c AND state = 'open';
