INSERT INTO {bucket}.keys SELECT key FROM {keys} AS keys;
