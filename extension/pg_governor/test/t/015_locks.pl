# A LOCK TABLE does not open the gate for statements; who blocks a slot is let in.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = governed_node('locks', <<'EOC');
pg_governor.autocommit_limit = 2
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
max_connections = 80
EOC
$node->safe_psql('postgres', 'CREATE TABLE things (n int)');

# Statements of these queue with a lock on the table; two that work have the slots.
my @holders = map { session($node) } 1 .. 2;
my @waiters = map { session($node) } 1 .. 40;
$_->ask('SET pg_governor.gate_autocommit = on') for (@holders, @waiters);
$_->tell('DO $$BEGIN PERFORM pg_sleep(1000); END$$') for @holders;
$node->poll_query_until('postgres', "SELECT sum(taken) = 2 FROM pg_governor_pools") or die;
$_->tell('INSERT INTO things VALUES (1)') for @waiters;
wait_for_queue($node, 40);

# in a block without a slot: nothing that has one waits for it; a session of the server watches, which sees
# the first that are let in before the others are
$node->safe_psql('postgres', <<'EOC');
CREATE FUNCTION first_let_in() RETURNS bigint LANGUAGE plpgsql AS $$DECLARE n bigint := 0;
BEGIN
	WHILE n = 0 LOOP
		PERFORM pg_sleep(0.001);
		n := (SELECT sum(admits_blocking) FROM pg_governor_pools);
	END LOOP;
	RETURN n;
END$$
EOC
my $watch = session($node);
$watch->tell('SELECT first_let_in()');
my $locker = session($node);
my $began = time;
$locker->tell("BEGIN;\nLOCK TABLE things");
my $admitted = $watch->settle;
my $took = time - $began;
cmp_ok($admitted, '>', 0, 'some who block it are let in');
# two at a look for locks, which are 40 ms apart or more
cmp_ok($admitted, '<=', 2 * (1 + $took / 0.04), sprintf('a few at a time: %d in %.2f s', $admitted, $took));
$watch->leave;
$locker->settle;
pass('and it gets its lock in the end');
$locker->ask('COMMIT');
$_->settle for @waiters;
is($node->safe_psql('postgres', 'SELECT count(*) FROM things'), '40', 'as do the others');

# with strict order nobody is let in who blocks no slot, and one for each slot that waits
$node->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @holders;
$_->settle for @holders;
set_all($node, strict => 'on');
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
$holders[1]->tell('DO $$BEGIN PERFORM pg_sleep(1000); END$$');
$holders[0]->tell('DO $$BEGIN WHILE (pg_stat_file(\'let_go\', true)).size IS NULL LOOP PERFORM pg_sleep(0.01); END LOOP;
	LOCK TABLE things; END$$');
$node->poll_query_until('postgres', "SELECT sum(taken) = 2 FROM pg_governor_pools") or die;
$node->safe_psql('postgres', <<'EOC');
CREATE FUNCTION when_let_go() RETURNS int LANGUAGE plpgsql AS
	$$BEGIN WHILE (pg_stat_file('let_go_too', true)).size IS NULL LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN 1; END$$
EOC
$_->tell('INSERT INTO things SELECT when_let_go()') for @waiters[ 0 .. 9 ];
wait_for_queue($node, 10);
append_to_file($node->data_dir . '/let_go', '');
ok($node->poll_query_until('postgres', 'SELECT sum(taken) = 3 FROM pg_governor_pools'), 'strict: one is let in for the one that waits');
for (1 .. 20)
{
	wait_for_look($node);
	my $taken = $node->safe_psql('postgres', 'SELECT sum(taken) FROM pg_governor_pools');
	die "strict: $taken" if $taken > 3;
}
pass('and no other one while it runs');
append_to_file($node->data_dir . '/let_go_too', '');
$holders[0]->settle;
$node->safe_psql('postgres', "SELECT pg_cancel_backend($holders[1]{pid})");
$_->settle for ($holders[1], @waiters);
is($node->safe_psql('postgres', 'SELECT count(*) FROM things'), '50', 'until all have passed');
is($node->safe_psql('postgres', 'SELECT sum(taken), sum(queued) FROM pg_governor_pools'), '0|0', 'nothing is left');

$node->stop;
done_testing();
