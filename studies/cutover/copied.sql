SELECT count(*) = 3 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel
