# A LOCK TABLE does not open the gate for statements; who blocks a slot is let in.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

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
$locker->tell("BEGIN;\nLOCK TABLE things");
my $admitted = $watch->settle;
cmp_ok($admitted, '>', 0, 'some who block it are let in');
cmp_ok($admitted, '<', 30, "a few at a time: $admitted");
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
	LOCK TABLE things; PERFORM pg_sleep(1); END$$');
$node->poll_query_until('postgres', "SELECT sum(taken) = 2 FROM pg_governor_pools") or die;
$_->tell('INSERT INTO things SELECT n FROM (SELECT 1, pg_sleep(0.1)) t(n)') for @waiters[ 0 .. 9 ];
wait_for_queue($node, 10);
append_to_file($node->data_dir . '/let_go', '');
my $most = 0;
my $began = time;
while (time - $began < 60)
{
	my ($taken, $queued) = split /\|/, $node->safe_psql('postgres', 'SELECT sum(taken), sum(queued) FROM pg_governor_pools');
	$most = $taken if $taken > $most;
	last if $queued == 0;
	usleep(20_000);
}
is($most, '3', 'strict: one is let in for the one that waits');
$holders[0]->settle;
$node->safe_psql('postgres', "SELECT pg_cancel_backend($holders[1]{pid})");
$_->settle for ($holders[1], @waiters);
is($node->safe_psql('postgres', 'SELECT count(*) FROM things'), '50', 'until all have passed');
is($node->safe_psql('postgres', 'SELECT sum(taken), sum(queued) FROM pg_governor_pools'), '0|0', 'nothing is left');

$node->stop;
done_testing();
