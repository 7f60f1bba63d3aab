CREATE ROLE clerk;
CREATE TABLE orders (client int NOT NULL, seq bigint NOT NULL, chain bigint, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (client, seq));
CREATE TABLE stock (id int NOT NULL, count int NOT NULL, note text NOT NULL);
CREATE TABLE shipments (id bigserial PRIMARY KEY, item int NOT NULL, note text NOT NULL);
INSERT INTO stock SELECT i, 1000, repeat('s', 80) FROM generate_series(1, :rows) i;
\if :has_key
ALTER TABLE stock ADD PRIMARY KEY (id);
\endif
INSERT INTO shipments (item, note) SELECT i, repeat('d', 80) FROM generate_series(1, :rows) i;
CREATE INDEX ON shipments (item);
GRANT SELECT ON orders, stock TO clerk;
