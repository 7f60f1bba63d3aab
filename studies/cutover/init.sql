CREATE ROLE clerk;
CREATE TABLE orders (client int NOT NULL, seq bigint NOT NULL, chain bigint, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (client, seq));
CREATE TABLE stock (id int NOT NULL, count int NOT NULL, note text NOT NULL);
CREATE TABLE shipments (id bigserial PRIMARY KEY, item int NOT NULL, note text NOT NULL);
CREATE TABLE visits (day int NOT NULL) PARTITION BY RANGE (day);
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM (0) TO (10);
CREATE TABLE audit (item int NOT NULL);
CREATE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.audit VALUES (NEW.item); RETURN NULL; END $$;
INSERT INTO stock SELECT i, 1000, repeat('s', 80) FROM generate_series(1, :rows) i;
\if :has_key
ALTER TABLE stock ADD PRIMARY KEY (id);
\endif
INSERT INTO shipments (item, note) SELECT i, repeat('d', 80) FROM generate_series(1, :rows) i;
CREATE INDEX ON shipments (item);
CREATE TRIGGER audited AFTER INSERT ON shipments FOR EACH ROW EXECUTE FUNCTION audited();
INSERT INTO visits VALUES (1), (2);
GRANT SELECT ON orders, stock TO clerk;
