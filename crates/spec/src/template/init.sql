-- Builds the data once; the rig copies or keeps them between trials.
CREATE TABLE customers (
    id bigint PRIMARY KEY,
    orders bigint NOT NULL DEFAULT 0
);
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer bigint NOT NULL,
    amount numeric NOT NULL,
    placed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO customers (id) SELECT generate_series(1, :rows);
VACUUM ANALYZE customers;
