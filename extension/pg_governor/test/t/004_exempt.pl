# What is not a client's session never queues, however full the gates are; and
# pipelines and prepared statements work through the gates.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $settings = <<'EOC';
pg_governor.transaction_limit = 1
pg_governor.query_limit = 1
pg_governor.autocommit_limit = 1
pg_governor.gate_autocommit = on
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.queue_timeout = 0
wal_level = logical
autovacuum_naptime = 1s
EOC
my $node = governed_node('exempt', $settings, allows_streaming => 'logical');
$node->safe_psql('postgres',
	'CREATE TABLE things (id int PRIMARY KEY); INSERT INTO things SELECT generate_series(1, 1000)');
my $subscriber = governed_node('subscriber', $settings, allows_streaming => 'logical');
$subscriber->safe_psql('postgres', 'CREATE TABLE things (id int PRIMARY KEY)');
$node->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE things');

# every gate of both servers is closed
my @closed;
my $subscription = session($subscriber);
for my $server ($node, $subscriber)
{
	my ($transaction, $query, $change) = map { session($server) } 1 .. 3;
	$transaction->ask('BEGIN');
	$query->tell('SELECT pg_sleep(1000)');
	$change->tell('DO $$BEGIN PERFORM pg_sleep(1000); END$$');
	push @closed, [ $server, $transaction, $query, $change ];
}

# who looks does not queue
my $look = '-c pg_governor.gate_begin=off -c pg_governor.gate_autocommit=off';
for my $closed (@closed)
{
	local $ENV{PGOPTIONS} = $look;
	$closed->[0]->poll_query_until('postgres', 'SELECT sum(taken) FROM pg_governor_pools', '3') or die;
}

# a base backup, a streaming standby
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
pass('base backup and standby');

# logical replication: the first copy, the apply worker and its walsender
my $publisher = $node->connstr('postgres') =~ s/'/''/gr;
$subscription->ask("CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p");
unlike($subscription->errors, qr/ERROR/, 'a subscription is made');
sub there
{
	my ($server, $count) = @_;
	local $ENV{PGOPTIONS} = $look;
	return $server->poll_query_until('postgres', 'SELECT count(*) FROM things', $count);
}
ok(there($subscriber, '1000'), 'first copy');
$node->safe_psql('postgres',
	'SET pg_governor.gate_autocommit = off; INSERT INTO things VALUES (0); DELETE FROM things WHERE id > 100');
ok(there($subscriber, '101'), 'apply worker');
ok(there($standby, '101'), 'streaming standby, which is governed too');

# autovacuum
{
	local $ENV{PGOPTIONS} = $look;
	ok( $node->poll_query_until('postgres', "SELECT autovacuum_count + autoanalyze_count > 0
			FROM pg_stat_user_tables WHERE relname = 'things'"),
		'autovacuum');
}

# vacuum, DDL and administration by clients do not queue either
$node->safe_psql('postgres', 'VACUUM things');
$node->safe_psql('postgres', 'CREATE INDEX ON things (id)');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('postgres', 'CHECKPOINT');
pass('utilities');

for my $server (@closed)
{
	my ($closed, $transaction, @busy) = @$server;
	$closed->safe_psql('postgres',
		"SET pg_governor.gate_autocommit = off; SELECT pg_cancel_backend($_->{pid})") for @busy;
	$_->settle for @busy;
	$transaction->ask('COMMIT');
}
$subscription->ask('SET pg_governor.gate_autocommit = off; DROP SUBSCRIPTION s');

# pgbench through one slot: simple, extended, prepared, and pipelines
my $script = $node->basedir . '/pipeline.sql';
append_to_file($script, <<'EOC');
\startpipeline
BEGIN;
SELECT count(*) FROM things;
INSERT INTO things VALUES (:client_id + 2000) ON CONFLICT DO NOTHING;
COMMIT;
SELECT 1;
\endpipeline
EOC
$node->command_ok([ 'pgbench', '-n', '-i', '-s', '1', 'postgres' ], 'pgbench -i');
for my $mode ([ '-M', 'simple' ], [ '-M', 'extended' ], [ '-M', 'prepared' ],
	[ '-M', 'extended', '-f', $script ], [ '-M', 'prepared', '-f', $script ],
	[ '-M', 'prepared', '-S' ])
{
	$node->command_ok([ 'pgbench', '-n', '-c', '8', '-t', '50', @$mode, 'postgres' ],
		"pgbench @$mode");
}
$ENV{PGOPTIONS} = $look;
nothing_left($node, 'pgbench');
is($node->safe_psql('postgres', "SELECT sum(admits_free + admits_again + admits_turn) >= 3 * 8 * 50
		FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'"),
	't', 'every transaction was let in by a slot');

$_->stop for ($standby, $subscriber, $node);
done_testing();
