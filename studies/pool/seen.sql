-- The address that the server knows of its client.
INSERT INTO seen SELECT client_addr FROM pg_stat_activity WHERE pid = pg_backend_pid();
