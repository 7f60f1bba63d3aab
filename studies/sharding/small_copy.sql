-- A full copy of the small table on this server, and the function that reads it.
CREATE TABLE IF NOT EXISTS public.small_copy (userid int PRIMARY KEY, info text);
INSERT INTO public.small_copy (userid)
    SELECT generate_series(1, current_setting('study.small_rows')::int)
    ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION public.query_smalltbl_any(key int) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT info FROM public.small_copy WHERE userid = key);
END
$$;
