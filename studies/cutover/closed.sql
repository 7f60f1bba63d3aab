SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND backend_xid IS NOT NULL
