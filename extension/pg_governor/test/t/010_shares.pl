# The total of all pools, weights, and the shares of roles.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('shares', <<'EOC');
pg_governor.transaction_limit = 2
pg_governor.pools = 'p0(), p1()'
pg_governor.total_limit = 3
pg_governor.queue_timeout = 0
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.policy = fifo
max_connections = 80
EOC

# the limit over all pools
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
$_->leave for @pools;

# weights: what is free is borrowed, and comes back as transactions end
# nobody waits for so long that it is next for that
set_all($node, transaction_limit => 20, total_limit => 4, pass_over_max => '30min',
	pools => 'light(weight=1), heavy(weight=3)');
my @light = map { session($node) } 1 .. 8;
my @heavy = map { session($node) } 1 .. 8;
$_->ask("SET pg_governor.pool = 'light'") for @light;
$_->ask("SET pg_governor.pool = 'heavy'") for @heavy;
sub taken
{
	return $node->safe_psql('postgres', "SELECT string_agg(taken::text, ',' ORDER BY pool) FROM pg_governor_pools
		WHERE class = 'transaction' AND pool IN ('light', 'heavy')");
}
$_->ask('BEGIN') for @light[ 0 .. 3 ];
is(taken(), '0,4', 'one pool has what the other does not use');
for my $place (4 .. 7)
{
	$light[$place]->tell('BEGIN');
	wait_for_queue($node, ($place - 4) * 2 + 1);
	$heavy[$place]->tell('BEGIN');
	wait_for_queue($node, ($place - 4) * 2 + 2);
}
$light[$_]->ask('COMMIT') for 0 .. 2;
$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_queue', '5') or die;
is(taken(), '3,1', 'then each has slots by its weight');
# ageing: who has waited for pass_over_max is next, also of the pool that has its share
set_all($node, pass_over_max => '1ms');
$heavy[4]->settle;
$heavy[4]->ask('COMMIT');
$light[4]->settle;
is(taken(), '2,2', 'and who has waited for long is next');
$light[3]->ask('COMMIT');
for my $session (@heavy[ 5, 6 ], @light[ 4 .. 7 ], $heavy[7])
{
	$session->settle;
	$session->ask('COMMIT');
}
nothing_left($node, 'weights');
$_->leave for (@light, @heavy);
set_all($node, pass_over_max => '4s', pools => '');

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
is(gate_counts($node, 'taken, queued'), '2|2', 'one role has half of the slots');
$greedy[4]->ask("\\set VERBOSITY verbose\nBEGIN;\nSELECT 1;\nROLLBACK");
like($greedy[4]->errors, qr/53G02/, 'and half of the queue');
my @modest = map { session($node, user => 'modest') } 1 .. 3;
$_->ask('BEGIN') for @modest[0 .. 1];
is(gate_counts($node, 'taken, queued'), '4|2', 'another role passes its queue');
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
$_->leave for (@greedy, @modest);

# roles that are gone leave their place: after 32 of them two new ones do not share one share
for my $i (1 .. 32)
{
	$node->safe_psql('postgres', "CREATE ROLE gone LOGIN");
	my $gone = session($node, user => 'gone');
	$gone->ask('BEGIN; COMMIT');
	$gone->leave;
	$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gone'", '0') or die;
	$node->safe_psql('postgres', 'DROP ROLE gone');
}
$node->safe_psql('postgres', 'CREATE ROLE first LOGIN; CREATE ROLE second LOGIN');
my @first = map { holder($node, user => 'first') } 1 .. 2;
my @second = map { holder($node, user => 'second') } 1 .. 2;
is(gate_counts($node, 'taken, queued'), '4|0', 'each of two roles has its own half');
$_->ask('COMMIT') for (@first, @second);
is($node->safe_psql('postgres', 'SELECT repairs FROM pg_governor_health'), '0', 'no repairs');
nothing_left($node, 'roles');

$node->stop;
done_testing();
