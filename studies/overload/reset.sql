TRUNCATE log;
UPDATE state SET seq = 0, chain = NULL;
