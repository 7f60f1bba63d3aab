-- Every setting with its default, and who may change it.
CREATE EXTENSION pg_governor;
SELECT name, boot_val, unit, context FROM pg_settings
WHERE name LIKE 'pg\_governor.%' ORDER BY name COLLATE "C";

-- What is not understood is refused, with the place.
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=x)';
ALTER SYSTEM SET pg_governor.pools = 'reports(queries=2)';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2) batch()';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2),';
ALTER SYSTEM SET pg_governor.pools = ' reports ( query = 2 , transaction=4 ),batch()';
ALTER SYSTEM SET pg_governor.pools = 'reports(transaction=9999999)';
ALTER SYSTEM SET pg_governor.pools = 'reports(transaction=99999999999999999999)';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2), batch(query=1), reports(query=3)';
ALTER SYSTEM SET pg_governor.pools = 'reports(query=2, query=3)';
ALTER SYSTEM SET pg_governor.pools = 'reports(weight=0)';
ALTER SYSTEM SET pg_governor.pools = 'reports(queue_timeout=soon)';
ALTER SYSTEM SET pg_governor.pools = 'reports(queue_timeout=-1)';
ALTER SYSTEM SET pg_governor.pools = 'reports(on_timeout=break)';
ALTER SYSTEM SET pg_governor.pools = 'reports(policy=lifo)';
ALTER SYSTEM SET pg_governor.pools = 'reports(weight=2, weight=2)';
ALTER SYSTEM SET pg_governor.pools = 'reports(weight=1000, queue_timeout=1min, on_timeout=wait, policy=codel)';
ALTER SYSTEM SET pg_governor.pools = 'reports';
ALTER SYSTEM SET pg_governor.pools = '(query=2)';
ALTER SYSTEM SET pg_governor.pools = 'reports(mode=watch)';
ALTER SYSTEM SET pg_governor.pools = 'reports(mode=observe)';
ALTER SYSTEM RESET pg_governor.pools;
ALTER SYSTEM SET pg_governor.pool_rules = 'reports';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports()';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(tag.job=report)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(application=x, database=y)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, tag=report)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, tag.=report)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, tag.job)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, tag.job="report)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role.x=app)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(user=app)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, query_id=0)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, query_id=99999999999999999999)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app, query_id=1x)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app), batch(role=app';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app) batch(role=etl)';
ALTER SYSTEM SET pg_governor.pool_rules = 'reports(role=app),';
ALTER SYSTEM SET pg_governor.pool_rules = ' reports ( role = App , tag."my key" = "a ""b""", query_id=-42 ),batch(role=public,application="(x="), reports(role=etl)';
ALTER SYSTEM RESET pg_governor.pool_rules;
ALTER SYSTEM SET pg_governor.reserved_roles = 'a b c, "x';
ALTER SYSTEM SET pg_governor.reserved_roles = 'a, "x';
ALTER SYSTEM SET pg_governor.reserved_roles = 'a,';
ALTER SYSTEM SET pg_governor.reserved_roles = 'a,,b';
ALTER SYSTEM SET pg_governor.reserved_roles = 'a, ""';
ALTER SYSTEM SET pg_governor.reserved_roles = 'a(b)';
ALTER SYSTEM SET pg_governor.reserved_roles = 'Admin, "Some ""One" ,b';
ALTER SYSTEM RESET pg_governor.reserved_roles;
ALTER SYSTEM SET pg_governor.hard_max_factor = 0.5;
ALTER SYSTEM SET pg_governor.role_share = 0;
ALTER SYSTEM SET pg_governor.mode = 'watch';
SET pg_governor.pool = '';
SET pg_governor.on_timeout = 'break';
SET pg_governor.nonsense = 1;

-- How a session is treated is not for the session to decide.
CREATE ROLE regress_governor_user LOGIN;
SET ROLE regress_governor_user;
SET pg_governor.pool = 'other';
SET pg_governor.pool_rules = '';
SET pg_governor.gate_begin = off;
SET pg_governor.gate_autocommit = off;
SET pg_governor.queue_timeout = 1;
-- but giving up earlier is
SET pg_governor.user_queue_timeout = 1;
RESET ROLE;
DROP ROLE regress_governor_user;
