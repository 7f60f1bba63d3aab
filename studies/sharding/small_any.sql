-- A call asks any of the servers.
CREATE OR REPLACE FUNCTION public.query_smalltbl_any(key int) RETURNS text
LANGUAGE plproxy AS $$
    CLUSTER 'pgrig_shard';
    RUN ON ANY;
    TARGET public.query_smalltbl_any;
$$;
