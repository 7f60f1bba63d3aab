# Nobody stalls for what takes long, nothing is let in without bound, and shares
# are kept.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = governed_node('bounds', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.queue_timeout = 0
pg_governor.discount_time = 0
EOC
my $busy = 'DO $$BEGIN LOOP NULL; END LOOP; END$$';

sub gates
{
	my ($class, $columns) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM pg_governor_pools WHERE pool = 'default' AND class = '$class'");
}

sub busy_holder
{
	my $session = holder($node);
	$session->tell($busy);
	return $session;
}

sub cancel
{
	my ($session) = @_;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
	$session->ask('ROLLBACK');
	$session->errors;
}

# a long transaction that works: the first short one waits for long_time, and the others do not
my $long = busy_holder();
my $short = session($node);
my $began = time;
$short->ask("BEGIN;\nSELECT 1;\nCOMMIT") for 1 .. 20;
my $took = time - $began;
is(gates('long', 'taken, admits_demoted'), '1|1', 'a long transaction is moved into class long');
is(gates('transaction', 'taken, admits_stall'), '0|0', 'its slot is free, and nothing has stalled');
cmp_ok($took, '<', 8, sprintf('20 short ones beside it took %.2f s', $took));

# as many as there are slots
set_all($node, transaction_limit => 2);
my @more = map { busy_holder() } 1 .. 2;
$short->ask("BEGIN;\nSELECT 1;\nCOMMIT") for 1 .. 5;
cmp_ok(gates('long', 'taken'), '>=', 2, 'so are as many as are in the way');
is(gates('transaction', 'admits_stall'), '0', 'and short ones run');

# who was long the last time queues for class long, and does not take a short one's slot
cancel($long);
$long->tell('BEGIN');
wait_for_queue($node, 1);
is($node->safe_psql('postgres', 'SELECT class FROM pg_governor_queue'),
	'long', 'the next transaction of a long session queues there');
cancel($_) for @more;
$long->settle;
is(gates('long', 'taken'), '1', 'and is let in there');
# one transaction that is short however slow this machine is
$long->ask('COMMIT');
$long->ask("BEGIN;\nCOMMIT");
$long->ask('BEGIN');
is(gates('transaction', 'taken'), '1', 'one that is short again is counted as such');
$long->ask('COMMIT');
nothing_left($node, 'long');
$_->leave for ($long, @more);

# without this rule the stall rule's slot stays while it is needed: only the first one pays
set_all($node, transaction_limit => 1, long_time => '0');
$long = busy_holder();
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
$short->ask("BEGIN;\nSELECT 1;\nCOMMIT") for 1 .. 10;
is(gates('transaction', 'stalls, capacity'), '1|2', 'one stall for ten transactions');
like(slurp_file($node->logfile), qr/no slot of class "transaction" in pool "default" was released for 500 ms/,
	'a stall is logged');
cancel($long);
$node->poll_query_until('postgres',
	"SELECT capacity FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'", '1')
  or die;
pass('and is gone with what it was for');
$_->leave for ($long, $short);

# the hard maximum: clients that wait for a row of an idle holder, and then for nothing
$node->safe_psql('postgres', 'CREATE TABLE things (n int); INSERT INTO things VALUES (1)');
set_all($node, transaction_limit => 2, hard_max_factor => '2', discount_time => '10ms',
	stall_time => '50ms', queue_timeout => '200ms');
my $idle = holder($node);
$idle->ask('UPDATE things SET n = 2');
my @clients = map { session($node) } 1 .. 8;
$_->tell("BEGIN;\nUPDATE things SET n = n + 1") for @clients;
$node->poll_query_until('postgres', "SELECT timeouts > 20 FROM pg_governor_pools
	WHERE pool = 'default' AND class = 'transaction'") or die;
is(gates('transaction', 'taken, capacity, hard_max, queued'), '4|4|4|5',
	'neither discounts, stalls nor timeouts go beyond the hard maximum');
like(slurp_file($node->logfile), qr/is at its hard maximum of 4 slots/, 'which is logged');

# only a waiter that blocks others is let in
my $blocker = session($node);
$blocker->ask('DO $$BEGIN PERFORM pg_advisory_lock(1); END$$');
$blocker->tell('BEGIN');
wait_for_queue($node, 6);
my $blocked = session($node);
$blocked->tell('SELECT pg_advisory_lock(1)');
$blocker->settle;
is(gates('transaction', 'taken, admits_blocking'), '5|1', 'the blocking rule does');
like(slurp_file($node->logfile), qr/let process $blocker->{pid} in from the queue/, 'which is logged');
$blocker->ask('COMMIT; SELECT pg_advisory_unlock(1)');
$blocked->settle;
$idle->ask('COMMIT');
for (@clients)
{
	$_->tell('COMMIT');
}
$_->settle for @clients;
nothing_left($node, 'hard maximum');
$_->leave for (@clients, $blocker, $blocked, $idle);

# the limit over all pools
set_all($node, transaction_limit => 2, hard_max_factor => '3', discount_time => '0',
	stall_time => '0', queue_timeout => '0', total_limit => 3);
my @pools = map { session($node) } 1 .. 5;
$pools[$_]->ask("SET pg_governor.pool = 'p" . $_ % 2 . "'") for 0 .. 4;
$pools[$_]->ask('BEGIN') for 0 .. 2;
is($node->safe_psql('postgres', 'SELECT total_limit, total_taken FROM pg_governor_health'),
	'3|3', 'slots are counted over all pools');
$pools[3]->tell('BEGIN');
wait_for_queue($node, 1);
is($node->safe_psql('postgres', "SELECT taken, queued FROM pg_governor_pools
		WHERE pool = 'p1' AND class = 'transaction'"),
	'1|1', 'a free slot of its pool is not enough');
$pools[0]->ask('COMMIT');
$pools[3]->settle;
pass('a slot of another pool is');
$_->ask('COMMIT') for @pools[1 .. 3];
is($node->safe_psql('postgres', 'SELECT total_taken FROM pg_governor_health'), '0', 'none is left');
nothing_left($node, 'total');
$_->leave for @pools;

# one role's share of slots and of the queue
set_all($node, total_limit => 0, transaction_limit => 4, role_share => 50, max_queue => 4);
$node->safe_psql('postgres', 'CREATE ROLE greedy LOGIN; CREATE ROLE modest LOGIN');
my @greedy = map { session($node, user => 'greedy') } 1 .. 5;
$_->ask('BEGIN') for @greedy[0 .. 1];
for my $place (1, 2)
{
	$greedy[ $place + 1 ]->tell('BEGIN');
	wait_for_queue($node, $place);
}
is(gates('transaction', 'taken, queued'), '2|2', 'one role has half of the slots');
$greedy[4]->ask("\\set VERBOSITY verbose\nBEGIN");
like($greedy[4]->errors, qr/53G02/, 'and half of the queue');
my @modest = map { session($node, user => 'modest') } 1 .. 3;
$_->ask('BEGIN') for @modest[0 .. 1];
is(gates('transaction', 'taken, queued'), '4|2', 'another role passes its queue');
$modest[2]->tell('BEGIN');
wait_for_queue($node, 3);
is($node->safe_psql('postgres', "SELECT string_agg(place::text, ',' ORDER BY array_position(
		ARRAY[$greedy[2]{pid}, $greedy[3]{pid}, $modest[2]{pid}], pid)) FROM pg_governor_queue"),
	'1,2,1', 'a place in the queue is one of its role');
$greedy[0]->ask('COMMIT');
$greedy[2]->settle;
pass('its own slot goes to its own waiter');
$modest[0]->ask('COMMIT');
$modest[2]->settle;
pass('the other role\'s to the other');
$_->ask('COMMIT') for @greedy[ 1, 2 ];
$greedy[3]->settle;
$_->ask('COMMIT') for ($greedy[3], @modest[ 1, 2 ]);
nothing_left($node, 'shares');

# a user gives up earlier than the administrator would
set_all($node, role_share => 100, transaction_limit => 1, max_queue => 0);
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
my $holder = holder($node);
$modest[0]->ask("SET pg_governor.user_queue_timeout = '50ms'");
$modest[0]->ask("\\set VERBOSITY verbose\nBEGIN");
like($modest[0]->errors, qr/53G01.*within 50 ms/s, 'a timeout of the user ends in an error');

# who runs at its timeout is logged, with how long it has waited
set_all($node, queue_timeout => '50ms');
$modest[1]->ask('BEGIN');
is(gates('transaction', 'taken, admits_timeout'), '2|1', 'a timeout lets run');
like(slurp_file($node->logfile), qr/runs without a free slot after \d+ ms/, 'which is logged');
$modest[1]->ask('COMMIT');
set_all($node, queue_timeout => '0');

# long waits are logged
set_all($node, log_queue_waits => '20ms');
$modest[1]->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT waiting_ms > 30 FROM pg_governor_queue') or die;
$holder->ask('COMMIT');
$modest[1]->settle;
$modest[1]->ask('COMMIT');
like(slurp_file($node->logfile),
	qr/waited \d+\.\d+ ms for a slot of class "transaction" in pool "default"/,
	'a long wait is logged');

$node->stop;
done_testing();
