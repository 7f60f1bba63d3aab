# What an administrator can do: pauses, exempt roles, and moving, admitting and evicting by hand.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('hand', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.pools = 'other()'
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
EOC
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE ROLE watcher LOGIN; CREATE ROLE operator LOGIN;
	CREATE DATABASE second; CREATE TABLE things (n int); GRANT ALL ON things TO plain');

sub paused
{
	my ($count) = @_;
	return $node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_sessions WHERE paused', $count);
}

# a pause: what runs ends, what queues and what begins waits, blocks and statements alike
my $running = holder($node, user => 'plain');
my @clients = map { session($node, user => 'plain') } 1 .. 4;
$clients[0]->tell('BEGIN');
wait_for_queue($node, 1);
my $pauser = session($node);
$pauser->tell("SELECT pg_governor_pause('default')");
ok(paused(1), 'who queues is held');
$clients[1]->tell('BEGIN');
$clients[2]->tell('INSERT INTO things VALUES (1)');
$clients[3]->tell('CREATE TEMP TABLE t ()');
ok(paused(4), 'so is who begins, in a block, with a statement, with DDL');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_governor_pause%' AND state = 'active'
	AND pid = $pauser->{pid}"), '1', 'the pause waits for what runs');
is($running->ask('SELECT 1'), '1', 'which goes on');
$running->ask('COMMIT');
$pauser->settle;
pass('and ends when it has ended');
is(gate_counts($node, 'paused, taken, queued'), 't|0|0', 'nobody has a slot');
my $admin = session($node);
is($admin->ask('SELECT 1'), '1', 'a superuser passes');
$node->safe_psql('postgres', "ALTER ROLE operator SET pg_governor.pool = 'other'");
my $operator = session($node, user => 'operator');
is($operator->ask('SELECT 1'), '1', 'another pool is not paused');
is($admin->ask("SELECT pg_governor_resume('default')"), '4', 'a resume tells how many it lets go');
$clients[$_]->settle for 2, 3;
$clients[0]->tell('COMMIT');
$clients[1]->tell('COMMIT');
$_->settle for @clients;
unlike(join('', map { $_->errors } @clients), qr/ERROR|WARNING/, 'nothing of it failed');
nothing_left($node, 'pause');

# of a database; and a cancel in a pause dooms the block like one in the queue
$admin->ask("SELECT pg_governor_pause(database => 'postgres')");
$clients[0]->tell('BEGIN');
ok(paused(1), 'a database is paused');
is($node->safe_psql('second', 'SELECT 1', connstr => $node->connstr('second') . ' user=plain'), '1', 'another one is not');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($clients[0]{pid})");
$clients[0]->settle;
$clients[0]->ask('SELECT 1');
like($clients[0]->errors, qr/WARNING.*ERROR:  canceling statement due to user request/s, 'a pause can be cancelled');
$clients[0]->ask('ROLLBACK');
$clients[1]->ask("SET pg_governor.user_queue_timeout = '50ms'");
like($clients[1]->errors, qr/^$/, 'SET is no work');
$clients[1]->ask('SELECT 1');
like($clients[1]->errors, qr/queue timeout.*paused/s, 'and user_queue_timeout counts it');
$admin->ask("SELECT pg_governor_resume()");
is($admin->ask('SELECT count(*) FROM pg_governor_sessions WHERE paused'), '0', 'a resume without a name is for pools');
$clients[2]->tell('SELECT 1');
ok(paused(1), 'so that the database is still paused');
$admin->ask("SELECT pg_governor_resume(database => 'postgres')");
$clients[2]->settle;
$clients[1]->ask('RESET pg_governor.user_queue_timeout');

# exempt roles take no slot and never queue; roles after SET SESSION AUTHORIZATION are other roles
set_all($node, exempt_roles => 'watcher', reserved_roles => 'operator', reserved_slots => 1);
my $holder = holder($node, user => 'plain');
my $watcher = session($node, user => 'watcher');
is($watcher->ask('BEGIN; SELECT 1; COMMIT'), '1', 'an exempt role passes a full gate');
$admin->ask('SELECT pg_governor_pause(wait => false)');
is($watcher->ask('SELECT 2'), '2', 'and a pause');
$admin->ask('SELECT pg_governor_resume()');
my $super = session($node);
$super->ask('BEGIN');
is(gate_counts($node, 'taken, reserved'), '1|1', 'a superuser takes a reserved slot');
$super->ask('COMMIT');
$super->ask('SET SESSION AUTHORIZATION plain');
$super->tell('BEGIN');
wait_for_queue($node, 1);
pass('who was a superuser queues as the role that it is now');
$holder->ask('COMMIT');
$super->settle;
$super->ask('COMMIT; SET SESSION AUTHORIZATION watcher');
$holder->ask('BEGIN');
is($super->ask('BEGIN; SELECT 1; COMMIT'), '1', 'or passes as an exempt one');
$super->ask('SET SESSION AUTHORIZATION operator');
$super->ask('BEGIN');
is(gate_counts($node, 'taken, reserved'), '1|1', 'or takes a reserved slot');
$super->ask('COMMIT');
$super->ask('RESET SESSION AUTHORIZATION');
set_all($node, reserved_slots => 0);

# admit, evict, move
$_->tell('BEGIN') for @clients[ 0 .. 2 ];
wait_for_queue($node, 3);
is($admin->ask("SELECT pg_governor_admit($clients[1]{pid})"), 't', 'admit');
$clients[1]->settle;
is(gate_counts($node, 'taken, queued, admits_by_hand'), '2|2|1', 'one is let in by hand');
is($admin->ask("SELECT pg_governor_admit($clients[1]{pid})"), 'f', 'who does not queue is not');
is($admin->ask("SELECT pg_governor_evict($clients[0]{pid})"), 't', 'evict');
$clients[0]->settle;
$clients[0]->ask('SELECT 1;');
like($clients[0]->errors, qr/ERROR:  removed from the queue/, 'one is sent away');
$clients[0]->ask('ROLLBACK');
is($admin->ask("SELECT pg_governor_move($clients[2]{pid}, 'other')"), 't', 'move');
$clients[2]->settle;
is($node->safe_psql('postgres', "SELECT pool, state FROM pg_governor_sessions WHERE pid = $clients[2]{pid}"),
	'other|running', 'one runs in another pool');
$clients[2]->ask('COMMIT; BEGIN');
is($node->safe_psql('postgres', "SELECT pool, state FROM pg_governor_sessions WHERE pid = $clients[2]{pid}"),
	'other|running', 'and its next transaction too');
$clients[2]->ask('COMMIT');
$admin->ask("SELECT pg_governor_move($clients[2]{pid})");
$clients[2]->tell('BEGIN');
wait_for_queue($node, 1);
pass('until it is moved back');
$_->ask('COMMIT') for $holder, $clients[1];
$clients[2]->settle;
$clients[2]->ask('COMMIT');
nothing_left($node, 'by hand');

$node->stop;
done_testing();
