CREATE INDEX ON orders (customer) WHERE state = 'open';
