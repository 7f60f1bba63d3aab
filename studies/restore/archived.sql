-- Two segments are archived after those that the backup has itself.
SELECT count(*) >= 2 FROM pg_ls_dir('{primary.archive}') AS file
 WHERE length(file) = 24
   AND file > (SELECT max((regexp_match(pg_read_file('{primary.archive}/' || backup), 'STOP WAL LOCATION: \S+ \(file (\w+)\)'))[1])
                 FROM pg_ls_dir('{primary.archive}') AS backup WHERE backup LIKE '%.backup')
