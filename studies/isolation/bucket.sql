CREATE TABLE {bucket}.history_lists (key bigint PRIMARY KEY, elements bigint[] NOT NULL);

CREATE FUNCTION {bucket}.list_append(key bigint, value bigint) RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO {bucket}.history_lists AS l (key, elements) VALUES ($1, ARRAY[$2])
    ON CONFLICT (key) DO UPDATE SET elements = l.elements || excluded.elements RETURNING cardinality(elements);
$$;

-- A list that is not there is empty.
CREATE FUNCTION {bucket}.list_read(key bigint) RETURNS bigint[] LANGUAGE sql AS $$
  SELECT coalesce((SELECT elements FROM {bucket}.history_lists AS l WHERE l.key = $1), '{}');
$$;
