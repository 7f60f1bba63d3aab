-- Asks the operating system to forget the files of the table.
DO $$
BEGIN
    EXECUTE format(
        'COPY (SELECT 1) TO PROGRAM %L',
        format('for part in %1$s %1$s.*; do [ ! -f "$part" ] || dd if="$part" iflag=nocache count=0 status=none; done',
               pg_relation_filepath('counted')));
END
$$;
