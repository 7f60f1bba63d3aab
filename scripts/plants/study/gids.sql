SELECT 'the prepared transaction ' || gid || ' is not there' FROM gids
    WHERE NOT done AND gid NOT IN (SELECT gid FROM pg_prepared_xacts)
UNION ALL SELECT format('transaction %s was committed, and gids has no such end of it', seq) FROM prepared
    WHERE seq <> 0 AND 'gid ' || seq NOT IN (SELECT gid FROM gids WHERE done);
