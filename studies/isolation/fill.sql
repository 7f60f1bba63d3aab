INSERT INTO {bucket}.history_lists SELECT key, '{}' FROM {keys} AS keys;
