CREATE TABLE keys (id uuid PRIMARY KEY, filler text NOT NULL);
CREATE FUNCTION new_key() RETURNS uuid LANGUAGE sql VOLATILE AS 'SELECT gen_random_uuid()';
INSERT INTO keys SELECT new_key(), repeat('x', 60) FROM generate_series(1, 500000);
