# A statement that queues on a standby does not hold up the replay of WAL.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = governed_node('primary', '', allows_streaming => 1);
$primary->safe_psql('postgres', 'CREATE TABLE things (n int)');
$primary->backup('base');
for my $strict ('off', 'on')
{
	my $standby = PostgreSQL::Test::Cluster->new("standby_$strict");
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', <<"EOC");
max_standby_streaming_delay = -1
pg_governor.gate_autocommit = on
pg_governor.query_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.strict = $strict
pg_governor.pools = 'reports()'
pg_governor.pool_rules = 'reports(role=public, tag.job=report)'
EOC
	$standby->start;
	wait_for_monitor($standby);
	is($standby->safe_psql('postgres', "SELECT pool FROM pg_governor_sessions WHERE pid = pg_backend_pid() /*job='report'*/"), 'reports',
		"strict = $strict: a tag chooses a pool");
	my $sleeper = session($standby);
	my $reader = session($standby);
	# What looks must not queue.
	local $ENV{PGOPTIONS} = $GovernorTest::LOOK;
	$sleeper->tell('SELECT pg_sleep(1000000)');
	$standby->poll_query_until('postgres', "SELECT sum(taken) = 1 FROM pg_governor_pools WHERE class = 'query'") or die;
	$reader->tell('SELECT count(*) FROM things');
	wait_for_queue($standby, 1);
	$primary->safe_psql('postgres', "ALTER TABLE things ADD COLUMN of_$strict int");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	pass("strict = $strict: the change of a table is replayed");
	is($reader->settle, '0', 'and the statement that held its lock was let in');
	$sleeper->cancel($standby);
	nothing_left($standby, 'standby');
	$standby->stop;
}
$primary->stop;
done_testing();
