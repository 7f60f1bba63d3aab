ALTER TABLE orders RENAME TO all_orders;
CREATE TABLE orders (LIKE all_orders) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE orders_%s PARTITION OF orders FOR VALUES FROM (%L) TO (%L)',
              n, date '2025-01-01' + n * 31, date '2025-01-01' + (n + 1) * 31)
    FROM generate_series(0, 11) n \gexec
INSERT INTO orders SELECT * FROM all_orders;
DROP TABLE all_orders;
