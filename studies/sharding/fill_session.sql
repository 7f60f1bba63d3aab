-- The rows of one bucket's session table, for runs that only update it. Half of each page is free, and later
-- updates may use it: each is a HOT update, and no page is pruned before it is full. So an update takes as much
-- WAL in the last trial as in the first, and on 16 servers as on one.
ALTER TABLE {bucket}.session SET (fillfactor = 50);
INSERT INTO {bucket}.session (userid) SELECT key FROM {keys} AS keys;
ALTER TABLE {bucket}.session RESET (fillfactor);
