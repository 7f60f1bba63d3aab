\set c random(1, 50000)
INSERT INTO events (customer, amount) VALUES (:c, 1);
