# What takes long keeps nobody out, and nothing is let in without bound.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = governed_node('bounds', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.queue_timeout = 0
pg_governor.discount_time = 0
pg_governor.stall_time = 0
EOC
my $busy = 'DO $$BEGIN LOOP NULL; END LOOP; END$$';

sub busy_holder
{
	my $session = holder($node);
	$session->tell($busy);
	return $session;
}

# a long transaction that works: the first short one waits for long_time, and the others do not
my $long = busy_holder();
my $short = session($node);
$short->ask("BEGIN;\nSELECT 1;\nCOMMIT") for 1 .. 20;
is(gate_counts($node, 'taken, long, became_long'), '1|1|1', 'a long transaction is known as such');
is(gate_counts($node, 'waits'), '1', 'of 20 short ones beside it the first one waited');

# the hard maximum is one bound for both
set_all($node, hard_max_factor => 2, stall_time => '100ms');
my $second = busy_holder();
$short->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT max(waiting_ms) > 2000 FROM pg_governor_queue') or die;
is(gate_counts($node, 'taken, capacity, hard_max, queued'), '2|2|2|1',
	'neither long ones nor stalls go beyond the hard maximum');
like(slurp_file($node->logfile), qr/is at its hard maximum of 2 slots/, 'which is logged');
$second->cancel($node);
$short->settle;
$short->ask('COMMIT');
set_all($node, long_limit => 0, stall_time => '0');
$short->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT max(waiting_ms) > 1000 FROM pg_governor_queue') or die;
is(gate_counts($node, 'taken, capacity'), '1|1', 'long_limit says how many');
$long->cancel($node);
$short->settle;
$short->ask('COMMIT');
set_all($node, long_limit => -1, stall_time => '0', hard_max_factor => 3);

# the next transaction of a session whose last one was long is as good as any other
$second->ask('BEGIN');
$long->tell('BEGIN');
wait_for_queue($node, 1);
$short->tell('BEGIN');
wait_for_queue($node, 2);
is($node->safe_psql('postgres', "SELECT place FROM pg_governor_queue WHERE pid = $long->{pid}"),
	'1', 'long does not stick to a session');
$_->ask('COMMIT') && $_->settle for $second;
$long->settle;
$long->ask('COMMIT');
$short->settle;
$short->ask('COMMIT');
nothing_left($node, 'long');

# long is work: neither a client that thinks nor one that waits for a lock becomes it
set_all($node, transaction_limit => 2, stall_time => '0', long_time => '100ms');
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
$node->safe_psql('postgres', 'CREATE TABLE things (n int); INSERT INTO things VALUES (1)');
$long->ask('BEGIN; UPDATE things SET n = 2');
$second->ask('BEGIN');
$second->tell('UPDATE things SET n = 3');
$short->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT max(waiting_ms) > 1500 FROM pg_governor_queue') or die;
is(gate_counts($node, 'long, became_long'), '0|0', 'waiting is no work');
set_all($node, long_elapsed_time => '200ms');
$short->settle;
cmp_ok(gate_counts($node, 'became_long'), '>=', 2, 'but time alone is enough where it is said so');
$_->ask('COMMIT') for ($long, $short);
$second->settle;
$second->ask('COMMIT');
nothing_left($node, 'work');
set_all($node, long_elapsed_time => '0', long_time => '0', transaction_limit => 1);

# the stall rule's slot stays while it is needed: only the first one pays
set_all($node, stall_time => '500ms');
$long = busy_holder();
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
$short->ask("BEGIN;\nSELECT 1;\nCOMMIT") for 1 .. 10;
is(gate_counts($node, 'stalls, capacity'), '1|2', 'one stall for ten transactions');
like(slurp_file($node->logfile), qr/no slot of class "transaction" in pool "default" was released for 500 ms/,
	'a stall is logged');
$long->cancel($node);
$node->poll_query_until('postgres',
	"SELECT capacity FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'", '1')
  or die;
pass('and is gone with what it was for');
$_->leave for ($long, $short, $second);

# a wait for a lock counts for five times discount_time, also without the stall rule
set_all($node, stall_time => '0', discount_time => '200ms', transaction_limit => 1);
my ($owner, $blocked, $behind) = map { session($node) } 1 .. 3;
$owner->ask('SET pg_governor.gate_begin = off; BEGIN; UPDATE things SET n = 5');
$blocked->ask('BEGIN');
my $began = time;
$blocked->tell('UPDATE things SET n = 6');
$node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_locks WHERE NOT granted') or die;
$behind->ask('BEGIN');
cmp_ok(time - $began, '>', 0.8, sprintf('who waits for a lock is discounted after %.2f s', time - $began));
$_->ask('COMMIT') for ($behind, $owner);
$blocked->settle;
$blocked->ask('COMMIT');
$_->leave for ($owner, $blocked, $behind);
nothing_left($node, 'lock waits');

# "strict": CPU-bound queries, idle holders, waits for locks, timeouts: never more than the limit
set_all($node, strict => 'on', long_time => '100ms', stall_time => '100ms', discount_time => '10ms',
	transaction_limit => 2, query_limit => 2, total_limit => 3, queue_timeout => '2s');
my @queries = map { session($node) } 1 .. 12;
$_->ask('SET pg_governor.gate_autocommit = on') for @queries;
$_->tell('SELECT count(*) FROM generate_series(1, 3000000)') for @queries;
my @idle = map { session($node) } 1 .. 4;
$_->tell('BEGIN') for @idle;
my $most = 0;
for (1 .. 60)
{
	# the sum of what the gates have is not read in one moment
	my $taken = $node->safe_psql('postgres', "SELECT max(taken) FILTER (WHERE class = 'query'),
		max(taken) FILTER (WHERE class = 'transaction'), (SELECT total_taken FROM pg_governor_health) FROM pg_governor_pools");
	my ($query, $transaction, $all) = split /\|/, $taken;
	$most = $query if $query > $most;
	die "strict: $taken" if $query > 2 || $transaction > 2 || $all > 3;
	usleep(50_000);
}
cmp_ok($most, '>', 0, "strict: $most of 12 queries and 2 of 4 transactions at once, 3 of all");
$_->settle for (@queries, @idle);
like(join('', map { $_->errors } @idle), qr/queue timeout/, 'strict: timeouts are errors');
$_->ask('ROLLBACK') for @idle;
$_->leave for (@queries, @idle);
nothing_left($node, 'strict');
set_all($node, strict => 'off', query_limit => 0, total_limit => 0, stall_time => '0', long_time => '0',
	discount_time => '0', queue_timeout => '0', transaction_limit => 1);

# parallel workers count for their leader's gate
set_all($node, transaction_limit => 3);
$node->safe_psql('postgres', 'CREATE TABLE rows (id int); INSERT INTO rows SELECT generate_series(1, 200000);
	ALTER TABLE rows SET (parallel_workers = 1); ANALYZE rows;
	CREATE FUNCTION work(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
		$$DECLARE n int := 0; BEGIN FOR i IN 1 .. 10000 LOOP n := n + i; END LOOP; RETURN n; END$$');
my $parallel = session($node);
$parallel->ask("SET $_") for 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'max_parallel_workers_per_gather = 1';
$parallel->ask('BEGIN');
$parallel->tell('SELECT count(work(id)) FROM rows');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker'") or die;
my $beside = holder($node);
my @others = map { session($node) } 1 .. 2;
$_->tell('BEGIN') for @others;
ok($node->poll_query_until('postgres', "SELECT capacity = 2 AND queued >= 1 FROM pg_governor_pools
	WHERE pool = 'default' AND class = 'transaction'"), 'a worker takes one slot of three');
$parallel->cancel($node);
$beside->ask('COMMIT');
$_->settle for @others;
$_->ask('COMMIT') for @others;
nothing_left($node, 'parallel');

# the limit adapts to sessions that use a CPU
set_all($node, transaction_limit => 8, runnable_per_cpu => '0.01', long_limit => 0);
my @busy = map { session($node) } 1 .. 12;
$_->tell("BEGIN;\n$busy") for @busy;
ok($node->poll_query_until('postgres', "SELECT capacity = least(8, (SELECT cpus FROM pg_governor_health))
	FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'"),
	'with too many runnable sessions it falls to one for each CPU');
set_all($node, runnable_per_cpu => '1000');
ok($node->poll_query_until('postgres', "SELECT capacity > 8 OR queued = 0 FROM pg_governor_pools
	WHERE pool = 'default' AND class = 'transaction'"), 'with too few it rises');
$node->poll_query_until('postgres', "SELECT queued = 0 FROM pg_governor_pools
	WHERE pool = 'default' AND class = 'transaction'") or die;
pass('until nobody queues');
$_->cancel($node) for @busy;
nothing_left($node, 'runnable');

$node->stop;
done_testing();
