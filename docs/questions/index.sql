CREATE INDEX ON orders (customer);
