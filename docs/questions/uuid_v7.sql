CREATE OR REPLACE FUNCTION new_key() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(md5(random()::text), 1, 3)
            || '8' || substr(md5(random()::text), 1, 15))::uuid $$;
TRUNCATE keys;
INSERT INTO keys SELECT new_key(), repeat('x', 60) FROM generate_series(1, 500000);
