# Short transactions queue once more than overload_factor × limit of them are wanted, or where they would wait
# for each other's locks; others queue at the limit.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = governed_node('overload', <<'EOC');
pg_governor.overload_factor = 2
pg_governor.transaction_limit = 2
pg_governor.stall_time = 0
pg_governor.long_time = 0
EOC
my $script = $node->basedir . '/short.sql';
append_to_file($script, "BEGIN;\nSELECT count(*) FROM generate_series(1, 5000);\nCOMMIT;\n");

# Waits until this is true of the gate.
sub is_gate
{
	my ($condition) = @_;
	return $node->poll_query_until('postgres',
		"SELECT $condition FROM pg_governor_pools JOIN pg_governor_status USING (pool, class, slot_limit)
		WHERE pool = 'default' AND class = 'transaction'");
}

my $locks = $node->basedir . '/locks.sql';
append_to_file($locks, "BEGIN;\nUPDATE counter SET n = n + 1;\nSELECT count(*) FROM generate_series(1, 5000);\nCOMMIT;\n");
$node->safe_psql('postgres', 'CREATE TABLE counter (n) AS SELECT 0');

# The load of so many clients goes on until this is true of the gate.
sub load_until
{
	my ($clients, $condition, $name, $what) = @_;
	my $load = IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-T', 600, '-f', $what // $script, $node->connstr('postgres') ],
		'>', \my $out, '2>', \my $err);

	ok(is_gate($condition), $name);
	$load->signal('TERM');
	$load->finish;
	$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'", '0')
	  or die;
}

load_until(4, q(capacity = 4 AND queued = 0 AND effective_limit = 4 AND enforced = 'overload_factor'), 'short transactions run beyond the limit');
load_until(12, q(capacity = 2 AND queued >= 6 AND effective_limit = 2 AND enforced = 'limit'), 'but not where more are wanted than overload_factor × limit');

load_until(4, 'capacity = 4 AND queued = 0', 'and again once fewer are wanted');

# A pause of the clients says nothing about their transactions.
# Where a second has become more than two, they say nothing about a short pause.
my $attempts = 0;
while ($attempts++ < 20)
{
	load_until(4, 'capacity = 4 AND queued = 0', 'load');
	my $began = time;
	sleep 1;
	my $capacity = gate_counts($node, 'capacity');
	next if time - $began > 2;
	is($capacity, '4', 'a short pause changes nothing');
	last;
}

my @holders = map { holder($node) } 1 .. 2;
my $third = session($node);
$_->tell('DO $$BEGIN LOOP NULL; END LOOP; END$$') for @holders;
is_gate('capacity = 2') or die;
$third->tell('BEGIN');
ok($node->poll_query_until('postgres', 'SELECT max(waiting_ms) > 1000 FROM pg_governor_queue'),
	'transactions that are not short queue at the limit');
is(gate_counts($node, 'taken, capacity'), '2|2', 'whose capacity is the limit');
$_->cancel($node) for @holders;
$third->settle;
$third->ask('COMMIT');
$_->leave for (@holders, $third);
nothing_left($node, 'overload');

set_all($node, overload_factor => 10);
load_until(12, 'capacity = 20 AND queued = 0', 'beyond the hard maximum, too');
load_until(12, 'capacity = 2 AND queued >= 6', 'but not where they would wait for locks', $locks);
load_until(12, 'capacity = 20 AND queued = 0', 'and again where they do not');

set_all($node, overload_factor => 1);
load_until(4, 'capacity = 2 AND queued > 0', 'with 1 the limit always holds');
set_all($node, overload_factor => 2, strict => 'on');
load_until(4, 'capacity = 2 AND queued > 0', 'and under "strict"');

# what is enforced now, in a word
sub check
{
	my ($settings, $expected, $name) = @_;
	set_all($node, @$settings);
	is($node->safe_psql('postgres', "SELECT slot_limit, effective_limit, enforced FROM pg_governor_status
		WHERE pool = 'default' AND class = 'transaction'"), $expected, "enforced: $name");
}
check([ strict => 'on' ], '2|2|limit', 'the limit');
$node->safe_psql('postgres', 'SELECT pg_governor_pause(wait => false)');
check([], '2|0|paused', 'a pause');
$node->safe_psql('postgres', 'SELECT pg_governor_resume()');
check([ mode => 'observe' ], '2||observed', 'nothing in mode observe');
check([ enabled => 'off' ], '0||disabled', 'nothing while it is off');
check([ mode => 'enforce', enabled => 'on', transaction_limit => 0 ], '0||unlimited', 'nothing without a limit');
check([ transaction_limit => 2, runnable_per_cpu => 1000 ], '2|2|limit', 'the limit where runnable_per_cpu has not moved it');
set_all($node, runnable_per_cpu => 0, strict => 'off', overload_factor => 1, discount_time => '10ms');
my $idle = holder($node);
my $next = holder($node);
my $third_one = holder($node);
ok(is_gate(q(effective_limit > 2 AND enforced = 'raised')), 'enforced: more where some do not work');
$_->ask('COMMIT') for ($idle, $next, $third_one);
nothing_left($node, 'enforced');
$node->stop;

done_testing();
