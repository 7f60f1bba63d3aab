-- The rows of one bucket, info and last_login NULL as published. {keys} gives its keys; one in 64 is
-- in the small table, too.
INSERT INTO {bucket}.userinfo (userid) SELECT key FROM {keys} AS keys;
INSERT INTO {bucket}.session (userid) SELECT key FROM {keys} AS keys;
INSERT INTO {bucket}.tbl_small (userid) SELECT key FROM {keys} AS keys WHERE key <= {key_max} / 64;
