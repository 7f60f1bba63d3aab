SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel
