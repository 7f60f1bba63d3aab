-- Customers, and a million orders of theirs. A tenth of the orders is open.
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region int NOT NULL);
INSERT INTO customers SELECT i, 'customer ' || i, i % 20 FROM generate_series(1, 50000) i;
CREATE TABLE orders (
    id int PRIMARY KEY, customer int NOT NULL, day date NOT NULL, total numeric(10, 2) NOT NULL,
    state text NOT NULL, note text NOT NULL
);
INSERT INTO orders
    SELECT i, 1 + (random() * 49999)::int, date '2025-01-01' + i % 365, (random() * 1000)::numeric(10, 2),
           CASE WHEN i % 10 = 0 THEN 'open' ELSE 'done' END, md5(i::text)
    FROM generate_series(1, 1000000) i;
