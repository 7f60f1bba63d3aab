CREATE TABLE history_lists (key bigint PRIMARY KEY, elements bigint[] NOT NULL);
CREATE TABLE history_registers (key bigint PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE history_accounts (id int PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO history_accounts SELECT id, 100 FROM generate_series(0, 7) AS id;
-- A server with a fault: now and then an append takes the place of the element before it. Enabled by
-- the scenario that plants it.
CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(OLD.elements) > 0 AND random() < 0.02 THEN
    NEW.elements := OLD.elements[1: cardinality(OLD.elements) - 1]
      || NEW.elements[cardinality(OLD.elements) + 1:];
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER forget BEFORE UPDATE ON history_lists FOR EACH ROW EXECUTE FUNCTION forget();
ALTER TABLE history_lists DISABLE TRIGGER forget;
