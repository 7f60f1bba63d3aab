-- The rows of one bucket. {keys} gives its keys; as published, one in 64 is in the small table.
INSERT INTO {bucket}.userinfo SELECT key, md5(key::text) FROM {keys} AS keys;
INSERT INTO {bucket}.session SELECT key, now() FROM {keys} AS keys;
INSERT INTO {bucket}.tbl_small SELECT key, md5(key::text) FROM {keys} AS keys WHERE key <= {key_max} / 64;
