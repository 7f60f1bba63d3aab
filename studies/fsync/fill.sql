INSERT INTO {bucket}.writes_log (key, client, seq, chain)
    SELECT key, -1, 0, 0 FROM {keys} AS keys;
