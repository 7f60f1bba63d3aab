# What came with 17: login triggers do not queue, and transaction_timeout does not count the queue.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('newer', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.query_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
EOC
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	$node->stop;
	plan skip_all => 'login triggers and transaction_timeout came with 17';
}

my $holder = holder($node);
my $waiter = session($node);
$waiter->ask("SET transaction_timeout = '500ms'");
$waiter->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT max(waiting_ms) > 1500 FROM pg_governor_queue') or die;
$holder->ask('COMMIT');
$waiter->settle;
is($waiter->ask('SELECT 1'), '1', 'transaction_timeout does not count the queue');
$waiter->tell('SELECT pg_sleep(1000000)');
$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $waiter->{pid}", '0') or die;
pass('but what comes after it');

$node->safe_psql('postgres', <<'EOC');
CREATE TABLE logins (n int);
CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS
	$$BEGIN INSERT INTO logins SELECT count(*) FROM logins; END$$;
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login();
ALTER EVENT TRIGGER at_login ENABLE ALWAYS;
ALTER SYSTEM SET pg_governor.gate_autocommit = on;
ALTER SYSTEM SET pg_governor.autocommit_limit = 1;
EOC
reload_all($node);
my $query = session($node, quiet => 1);
$query->tell('SELECT pg_sleep(1000)');
my $change = session($node, quiet => 1);
$change->tell('DO $$BEGIN PERFORM pg_sleep(1000); END$$');
{
	local $ENV{PGOPTIONS} = '-c pg_governor.gate_autocommit=off';
	$node->poll_query_until('postgres', 'SELECT sum(taken) FROM pg_governor_pools', '2') or die;
}
my $login = session($node, quiet => 1);
$login->ask('SHOW server_version_num');
pass('a login trigger does not queue');
$_->vanish for ($query, $change, $login);

$node->stop;
done_testing();
