\set customer random(1, :rows)
\set amount random(1, 500)
BEGIN;
INSERT INTO orders (customer, amount) VALUES (:customer, :amount);
UPDATE customers SET orders = orders + 1 WHERE id = :customer;
END;
