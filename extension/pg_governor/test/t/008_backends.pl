# Parallel workers take no slot, sessions without a pool or a gate are no index, and a list of pools that is checked again and again
# leaves no memory behind.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('backends', <<'EOC');
pg_governor.transaction_limit = 2
pg_governor.query_limit = 1
pg_governor.gate_autocommit = on
pg_governor.max_pools = 64
pg_governor.queue_timeout = 0
max_worker_processes = 8
max_parallel_workers = 4
EOC

# A query with workers holds the only slot for queries; a worker that queued for it would never end.
# It ends when a file is there.
$node->safe_psql('postgres', 'CREATE TABLE rows (id int); INSERT INTO rows SELECT generate_series(1, 40000);
	ALTER TABLE rows SET (parallel_workers = 2); CREATE FUNCTION slow(int) RETURNS int
	LANGUAGE plpgsql PARALLEL SAFE AS $$BEGIN
		WHILE (pg_stat_file(\'let_go\', true)).size IS NULL LOOP PERFORM pg_sleep(0.01); END LOOP;
		RETURN $1; END$$; ANALYZE rows');
my $parallel = session($node);
$parallel->ask("SET $_") for 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'max_parallel_workers_per_gather = 2';
my $query = 'SELECT count(slow(id)) FROM rows';
like($parallel->ask("EXPLAIN $query"), qr/Workers Planned: 2/, 'the plan has workers');
$parallel->tell($query);
{
	local $ENV{PGOPTIONS} = '-c pg_governor.gate_begin=off -c pg_governor.gate_autocommit=off';
	my $workers = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker'";
	$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM ($workers) w") or die 'no workers';
	is( $node->safe_psql('postgres', "SELECT count(*) FROM pg_governor_sessions WHERE pid IN ($workers)"),
		'0', 'parallel workers are no sessions of the governor');
	is($node->safe_psql('postgres', 'SELECT sum(taken) FROM pg_governor_pools'),
		'1', 'one slot for a query, however many workers it has');
}
append_to_file($node->data_dir . '/let_go', '');
is($parallel->settle, '40000', 'the query ends');
{
	local $ENV{PGOPTIONS} = '-c pg_governor.gate_autocommit=off';
	nothing_left($node, 'parallel workers');
}

# ALTER SYSTEM checks a value as often as it is given.
SKIP:
{
	skip 'memory is read from /proc', 2 unless -r "/proc/$$/status";
	my $memory = sub {
		my ($pid) = @_;
		open my $status, '<', "/proc/$pid/status" or die "status of $pid: $!";
		my ($kb) = join('', <$status>) =~ /VmRSS:\s+(\d+) kB/;
		return $kb;
	};
	my $list = join(', ', map { "pool_$_(transaction=1)" } 1 .. 60);
	for my $case ([ 'accepted', $list ], [ 'refused', "$list, broken(transaction=x)" ])
	{
		my ($name, $value) = @$case;
		my $session = session($node);
		# one statement at a time: ALTER SYSTEM runs in no transaction block
		my $repeat = sub { $session->tell("ALTER SYSTEM SET pg_governor.pools = '$value'") for 1 .. $_[0]; $session->settle };
		$repeat->(100);
		my $before = $memory->($session->{pid});
		$repeat->(500);
		my $grown = $memory->($session->{pid}) - $before;
		cmp_ok($grown, '<', 2048, "a list that is $name 500 times leaves no memory behind ($grown kB)");
		$session->leave;
	}
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET pg_governor.pools');
}

# A session whose pool has no room, and one that is at no gate.
$node->append_conf('postgresql.conf', "pg_governor.max_pools = 1\npg_governor.unknown_pool = error\npg_governor.pools = 'elsewhere()'");
$node->restart;
{
	my $nowhere = session($node);
	$nowhere->ask("SET pg_governor.pool = 'elsewhere'; SET pg_governor.gate_begin = off; SET pg_governor.gate_autocommit = off");
	is($nowhere->ask('BEGIN; SELECT 1'), '1', 'a session whose pool has no room runs where it meets no gate');
	my $idle = session($node);
	$idle->ask('BEGIN; COMMIT');
	is( $node->safe_psql('postgres',
			"SELECT pid = $idle->{pid}, pool, state, class IS NULL, since IS NULL FROM pg_governor_sessions WHERE pid IN ($nowhere->{pid}, $idle->{pid})"),
		't|default|idle|t|t', 'it is in no row; who is at no gate has no class');
	is($node->safe_psql('postgres', 'SELECT DISTINCT pool FROM pg_governor_pools'),
		'default', 'and it is counted in no pool');
	$_->leave for $nowhere, $idle;
}

done_testing();
